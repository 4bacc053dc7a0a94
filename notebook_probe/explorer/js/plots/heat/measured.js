/** The step at which what a cell shows was measured: in its column, or before it. */

import { NOT_MEASURED } from "./states.js";

/** @typedef {Pick<ShownHeat, "first_step" | "last_step" | "end_step" | "columns">} StepColumns */

const NEVER = -(2 ** 31);

/**
 * Steps of a column, as far as the run has come.
 * @param {StepColumns} frame
 * @param {number} column
 */
export function columnSteps({ first_step: from, last_step: to, end_step: end, columns }, column) {
  const width = (to + 1 - from) / columns;
  /** @type {(place: number) => number} */
  const begin = (place) => Math.ceil(from + place * width - 1e-9);
  const first = begin(column);
  return { first, last: Math.max(first, Math.min(end, begin(column + 1) - 1)) };
}

/**
 * The column of a step.
 * @param {StepColumns} frame
 * @param {number} step
 */
export function columnOf({ first_step: first, last_step: last, columns }, step) {
  const column = Math.floor(((step - first) * columns) / (last + 1 - first));
  return Math.min(columns - 1, Math.max(0, column));
}

/**
 * Step of the last value of a cell of the heat map; null for one without a value.
 * @param {ShownHeat} frame
 * @param {number} row
 * @param {number} column
 */
export function measuredStep(frame, row, column) {
  if ("steps" in frame) return listedStep(frame, frame.steps, row, column);
  const { columns, carried, before, offsets } = frame;
  let at = column;
  while (at >= 0 && carried[row * columns + at]) at -= 1;
  if (at < 0) return before[row] ?? null;
  if (frame.states[row * columns + at] === NOT_MEASURED) return null;
  return columnSteps(frame, at).first + (offsets[row * columns + at] ?? 0);
}

/**
 * Step of a cell that is sent for each one; null for one without a value.
 * @param {StepColumns} frame
 * @param {Int32Array} steps
 * @param {number} row
 * @param {number} column
 */
export function listedStep({ first_step: first, columns }, steps, row, column) {
  const step = steps[row * columns + column];
  return step === NEVER ? null : first + step;
}

/**
 * "step 128, measured at 120", or the steps of a column with its own measurements.
 * @param {{ first: number, last: number }} shown
 * @param {number} step
 * @param {number | null} measured
 * @param {(step: number) => string} told
 * @param {string} [word]
 */
export function stepWords({ first, last }, step, measured, told, word = "measured") {
  if (measured !== null && measured < first) return `step ${told(step)}, ${word} at ${told(measured)}`;
  return first === last ? `step ${told(first)}` : `steps ${told(first)}–${told(last)}`;
}
