/** The attached probes: where they are, when they fired last, why not, and what they cost. */

import { THIN_SPACE, grouped, microseconds, significant } from "./format.js";

/**
 * `{ rows, byModule }` of a status; `last` is kept while nothing of it has changed.
 * @param {Status} status
 * @param {ProbeIndex | null} last
 * @returns {ProbeIndex}
 */
export function indexProbes(status, last) {
  const { attached, tallies, silent } = status;
  const same = last?.attached === attached && last.tallies === tallies && last.silent === silent;
  if (same) return last;
  /** @type {Map<number, SilentRow>} */
  const notes = new Map(silent.flatMap((group) => group.probes.map((place) => [place, group])));
  /** @type {ProbeRow[]} */
  const rows = attached.map(([module, quantity, schedule], place) => {
    const [step, us, percent] = tallies[place] ?? [-1, 0, 0];
    const group = notes.get(place);
    return { module, quantity, schedule, step, us, percent, note: group?.reason ?? "", kind: group?.kind ?? "" };
  });
  const byModule = Map.groupBy(rows, (row) => row.module);
  return { attached, tallies, silent, rows, byModule };
}

/**
 * "step 1 240 · 8.4 µs per step, 0.07 %", and the reason where it does not fire.
 * @param {ProbeRow} row
 */
export function probeText({ step, us, percent, note }) {
  const fired = step >= 0 ? `step ${grouped(step)}` : note ? "" : "no value yet";
  const share = percent ? `, ${significant(percent, 2)}${THIN_SPACE}%` : "";
  const cost = us ? `${microseconds(us)} per step${share}` : "";
  return [fired, note, cost].filter(Boolean).join(" · ");
}

/**
 * Why a series has no value: its probe's note, or "".
 * @param {ProbeIndex} probes
 * @param {string} module
 * @param {string} quantity
 */
export function probeNote({ byModule }, module, quantity) {
  const rows = byModule.get(module) ?? [];
  return rows.find((row) => row.quantity === quantity && row.note)?.note ?? "";
}

/**
 * "conv1, bn1, conv2 and 9 more"
 * @param {string[]} names
 * @param {number} [most]
 */
export function shortList(names, most = 3) {
  const rest = names.length - most;
  return names.slice(0, most).join(", ") + (rest > 0 ? ` and ${grouped(rest)} more` : "");
}

/** @param {number} n */
export function probesText(n) {
  return n === 1 ? "1 probe" : `${grouped(n)} probes`;
}
