/** The loss of a run as a line of some letters' width. */

import { paintSparkline } from "../../controls/sparkline.js";

/** @type {WeakMap<HTMLCanvasElement, string>} */
const painted = new WeakMap();

/**
 * Once for the same values and colour.
 * @param {HTMLCanvasElement} canvas
 * @param {Array<number | null>} values
 * @param {string} colour
 */
export function paintRunLine(canvas, values, colour) {
  const key = JSON.stringify([values, colour]);
  if (painted.get(canvas) === key) return;
  painted.set(canvas, key);
  paintSparkline(canvas, logarithms(values), colour);
}

/**
 * A loss falls by factors; what has no logarithm is left as it is.
 * @param {Array<number | null>} values
 */
function logarithms(values) {
  const known = values.filter((value) => value !== null);
  if (!known.length || Math.min(...known) <= 0) return values;
  return values.map((value) => (value === null ? null : Math.log10(value)));
}
