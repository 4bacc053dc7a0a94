/** Tooltip of the heat map: the cell under the pointer, as text and exact numbers. */

import { element } from "../../dom.js";
import { exact, grouped } from "../../format.js";
import { apartText } from "../../parts/compare/ratio_frame.js";
import { columnOf, columnSteps, measuredStep, stepWords } from "./measured.js";
import { NOT_FINITE, NOT_MEASURED } from "./states.js";

/** @typedef {{ units: string, steps: Map<string, number>, other: string, before: string, folds: string[] }} TipWords */

// Why a cell has no value: never measured so far, its series ended, or it had none when due.
const WHY = ["not measured", "not measured, no longer attached", "no value, although one was due"];

/**
 * Module, steps and what was measured there or stands there from a step before, exactly.
 * @param {ShownHeat} frame
 * @param {number} row
 * @param {number} step
 * @param {TipWords} words
 */
export function cellTooltip(frame, row, step, { units, steps: parted, other, before, folds }) {
  const column = columnOf(frame, step);
  const shown = columnSteps(frame, column);
  const cell = row * frame.columns + column;
  const isMeasured = frame.states[cell] !== NOT_MEASURED;
  const at = isMeasured ? measuredStep(frame, row, column) : null;
  const isFold = folds.includes(frame.rows[row]); // its modules may be measured at different steps
  const steps = stepWords(shown, step, at, grouped, isFold ? "newest value" : "measured");
  const isOne = at !== null && at < shown.first ? frame.mean[cell] === frame.maximum[cell] : shown.first === shown.last;
  const name = element("b", {}, frame.rows[row]);
  const head = element("div", { class: "nbp-tip-head" }, name, `  ${steps}`);
  /** @type {(text: string) => HTMLElement} */
  const line = (text) => element("div", {}, text);
  /** @type {(text: string) => HTMLElement} */
  const soft = (text) => element("div", { class: "nbp-soft" }, text);
  const notes = before ? [soft(before)] : [];
  if (!isMeasured) {
    const why = "gaps" in frame ? WHY[frame.gaps[cell]] : WHY[0];
    return [head, line(`${frame.quantity}: ${why}`), ...notes];
  }
  const values = [];
  const from = parted.get(frame.rows[row]);
  if (from !== undefined) notes.unshift(soft(`diverges at step ${grouped(from)}`));
  if (frame.ratio && frame.states[cell] !== NOT_FINITE) {
    const far = line(`${frame.quantity}  ${apartText(frame.mean[cell], frame.signed)}`);
    return [head, far, line(`of ${other}`), ...notes];
  }
  if (frame.states[cell] === NOT_FINITE)
    values.push(line(`${frame.quantity}: contains NaN or infinity`));
  else if (isOne)
    values.push(line(`${frame.quantity}  ${exact(frame.mean[cell], units)}`));
  else {
    values.push(line(`${frame.quantity}  ${exact(frame.mean[cell], units)} in the mean`));
    values.push(line(`at most ${exact(frame.maximum[cell], units)}`));
  }
  return [head, ...values, ...notes];
}
