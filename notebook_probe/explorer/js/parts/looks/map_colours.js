/** Numbers of a map as pixels: with a sign blue to orange round the ground, else viridis. */

import { penOf } from "../../dom.js";
import { NOT_FINITE_COLOUR, opaquePixel, rgbOf } from "../../plots/colour.js";
import { colourMap } from "../../plots/colour_maps.js";

/**
 * `{ low, high, pixels }` of a block: what the ends mean, and the colours between them.
 * @param {ShownBlock} block
 * @param {Float32Array} values
 * @param {string} ground
 * @returns {MapScale}
 */
export function scaleOf(block, values, ground) {
  const { pixels } = colourMap("value", rgbOf(ground));
  if (isShare(block)) return { low: 0, high: 1, pixels };
  const largest = largestSize(values);
  if (isSize(block)) return { low: 0, high: largest, pixels };
  return { low: -largest, high: largest, pixels: colourMap("sign", rgbOf(ground)).pixels };
}

/** @param {Pick<ShownBlock, "tensor">} block */
export function isShare({ tensor }) {
  return tensor === "attention";
}

/** @param {ShownBlock} block */
function isSize({ note }) {
  return note.startsWith("norm over");
}

/**
 * The map `values` (rows x columns) as an image that a canvas draws.
 * @param {Float32Array} values
 * @param {number} height
 * @param {number} width
 * @param {MapScale} scale
 */
export function paintMap(values, height, width, { low, high, pixels }) {
  const image = new ImageData(width, height);
  const out = new Uint32Array(image.data.buffer);
  const last = pixels.length - 1;
  const gone = opaquePixel(rgbOf(NOT_FINITE_COLOUR));
  const scale = high > low ? last / (high - low) : 0;
  for (let k = 0; k < out.length; k++) {
    const value = values[k];
    if (!Number.isFinite(value)) out[k] = gone;
    else out[k] = pixels[Math.round(Math.min(Math.max((value - low) * scale, 0), last))];
  }
  const canvas = new OffscreenCanvas(width, height);
  penOf(canvas).putImageData(image, 0, 0);
  return canvas;
}

/** @param {Float32Array} values */
function largestSize(values) {
  let largest = 0;
  for (const value of values) {
    if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  }
  return largest || 1;
}
