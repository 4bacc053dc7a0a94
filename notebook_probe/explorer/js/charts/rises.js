/** Largest rises of the lines of a chart from one drawn value to the next: steps to inspect. */

import { grouped } from "../format.js";
import { seriesName } from "../names.js";

const MOST = 5; // that one press after the other goes to
const APART = 0.01; // of the steps in sight: nearer ones are of the same rise

/** @typedef {{ size: number, from: number, to: number, name: string }} Rise */

/**
 * `painted()` are the lines as last painted; `pin(steps, words)` pins the step before a rise, and its own.
 * @param {Pick<PanelState, "lines" | "pins">} state
 * @param {() => PaintedLines | null} painted
 * @param {(steps: number[], words: string) => void} pin
 */
export function createRises(state, painted, pin) {
  /**
   * The largest rise in sight of a chart; if that is pinned, the next one.
   * @param {number} at
   */
  return function go(at) {
    const now = painted();
    if (!now) return;
    const found = largestRises(now.charts[at], now, state.lines?.x0 ?? 0);
    if (!found.length) return void pin([], "Nothing rises in sight.");
    const shown = found.findIndex(({ from, to }) => state.pins[0] === from && state.pins[1] === to);
    const next = (shown + 1) % found.length;
    const { from, to, name } = found[next];
    pin([from, to], `Rise ${grouped(next + 1)} of ${grouped(found.length)} in sight: ${name}.`);
    return undefined;
  };
}

/**
 * The largest first. On a logarithmic axis a rise is a ratio, else a difference, as the eye takes it.
 * @param {Pick<LineChart, "prepared" | "log">} chart
 * @param {Pick<PaintedLines, "axis" | "box" | "mapping">} painted
 * @param {number} x0
 */
function largestRises({ prepared, log }, { axis, box, mapping }, x0) {
  /** @type {(k: number, x: Float32Array) => number} */
  const stepOf = (k, x) => Math.round(mapping.step(x[k] + x0));
  const [first, last] = [box.left, box.right].map((px) => mapping.step(axis.value(px)));
  /** @type {Rise[]} */
  const all = [];
  for (const { left, module, quantity, x, y, n } of prepared) {
    if (left) continue;
    const name = seriesName(module, quantity);
    let before = -1; // the last finite value
    for (let k = 0; k < n; k++) {
      if (!Number.isFinite(y[k])) continue;
      const size = before < 0 ? 0 : log ? Math.log(y[k] / y[before]) : y[k] - y[before];
      const [from, to] = [stepOf(Math.max(0, before), x), stepOf(k, x)];
      if (size > 0 && Number.isFinite(size) && from >= first - 1 && to <= last + 1) all.push({ size, from, to, name });
      before = k;
    }
  }
  /** @type {Rise[]} */
  const found = [];
  for (const one of all.sort((a, b) => b.size - a.size)) {
    if (found.length === MOST) break;
    if (found.every(({ to }) => Math.abs(to - one.to) > APART * (last - first))) found.push(one);
  }
  return found;
}
