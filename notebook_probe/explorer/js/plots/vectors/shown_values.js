/** Drawn values of vectors: for histograms shares of a step's elements, unless counts are chosen. */

import { columnOf } from "../heat/measured.js";

/**
 * Cells of a row as they are drawn, (element, column).
 * @param {DecodedVectors} frame
 * @param {VectorRow} row
 * @param {boolean} counts
 */
export function shownCells(frame, row, counts) {
  if (!isHistogram(frame) || counts) return row.values;
  const { columns } = frame;
  const sums = new Float64Array(columns);
  row.values.forEach((value, k) => (sums[k % columns] += Number.isFinite(value) ? value : 0));
  return row.values.map((value, k) => (Number.isFinite(value) ? value / (sums[k % columns] || 1) : value));
}

/**
 * The vector at a column, the last one exactly; null where nothing was measured.
 * @param {DecodedVectors} frame
 * @param {VectorRow} row
 * @param {number | null} column
 * @param {boolean} counts
 */
export function vectorAt(frame, row, column, counts) {
  const { columns } = frame;
  const vector =
    column === null
      ? row.last
      : Float32Array.from({ length: row.n }, (_, k) => row.values[k * columns + column]);
  if (vector.every(Number.isNaN)) return null;
  if (!isHistogram(frame) || counts) return vector;
  const sum = vector.reduce((all, value) => all + (Number.isFinite(value) ? value : 0), 0);
  return vector.map((value) => value / (sum || 1));
}

/**
 * Place of an element from the top, and back: along an axis upwards, numbered ones as they are read.
 * @param {DecodedVectors} frame
 * @param {VectorRow} row
 * @param {number} element
 */
export function lineOf(frame, row, element) {
  return frame.at.length ? row.n - 1 - element : element;
}

/** @param {DecodedVectors} frame */
export function isHistogram(frame) {
  return frame.low_edges.length > 0;
}

/**
 * The column of a step, or the nearest earlier one at which the row was measured; null without.
 * @param {DecodedVectors} frame
 * @param {VectorRow} row
 * @param {number} step
 */
export function measuredColumn(frame, row, step) {
  let column = columnOf(frame, step);
  while (column >= 0 && isUnmeasured(frame, row, column)) column -= 1;
  return column < 0 ? null : column;
}

/**
 * @param {DecodedVectors} frame
 * @param {VectorRow} row
 * @param {number} column
 */
function isUnmeasured({ columns }, row, column) {
  for (let k = 0; k < row.n; k++) if (!Number.isNaN(row.values[k * columns + column])) return false;
  return true;
}

/**
 * Least and greatest finite value, positive ones alone for a logarithm; null without any.
 * @param {Iterable<number>} cells
 * @param {boolean} log
 */
export function rangeOf(cells, log) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of cells) {
    if (!Number.isFinite(value) || (log && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? null : { low, high };
}
