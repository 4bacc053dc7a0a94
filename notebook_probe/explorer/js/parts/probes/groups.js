/** The attached probes, one line for each quantity and schedule. */

import { grouped } from "../../format.js";
import { percentText } from "./dear_row.js";
import { period } from "./schedules.js";

/**
 * In the order of the probes: { quantity, schedule, rows, percent, step, note, where }.
 * @param {Pick<PanelState, "probes" | "model">} state
 * @returns {ProbeGroup[]}
 */
export function probeGroups({ probes, model }) {
  const byLine = Map.groupBy(probes.rows, (row) => `${row.quantity} ${row.schedule}`);
  return [...byLine.values()].map((rows) => {
    const [{ quantity, schedule }] = rows;
    const silent = rows.filter((row) => row.note && row.kind !== "waiting");
    const listed = model.quantities.find((one) => one.name === quantity);
    return {
      quantity,
      schedule,
      rows,
      percent: rows.reduce((sum, row) => sum + row.percent, 0),
      step: Math.max(...rows.map((row) => row.step)),
      note: silent.length === rows.length ? silent[0].note : "",
      where: whereText(rows, model),
      period: period(schedule),
      everyStep: Boolean(listed?.every_step),
    };
  });
}

/**
 * "3 ReLUs" where all are of one class, else "10 modules"; one place by its name.
 * @param {ProbeRow[]} rows
 * @param {PanelModel} model
 */
function whereText(rows, model) {
  if (rows.length === 1) return rows[0].module;
  const kinds = new Set(rows.map((row) => model.byPath.get(row.module)?.kind ?? ""));
  const [kind] = kinds;
  return `${grouped(rows.length)} ${kinds.size === 1 && kind ? `${kind}s` : "modules"}`;
}

/** @param {ProbeGroup[]} groups */
export function sumOf(groups) {
  return groups.reduce((sum, group) => sum + group.percent, 0);
}

/** @param {ProbeGroup[]} groups */
export function namesOf(groups) {
  return groups.map(({ quantity, percent }) => `${quantity} ${percentText(percent)}`).join(", ");
}
