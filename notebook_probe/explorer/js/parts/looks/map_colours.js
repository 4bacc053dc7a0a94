/** Numbers of a map as pixels: with a sign blue to orange round the ground, else viridis. */

import { NOT_FINITE_COLOUR, opaquePixel, rgbOf, viridis } from "../../plots/colour.js";

const STEPS = 128;
const BLUE = [[0, 114, 178], [0, 55, 100]];
const ORANGE = [[213, 94, 0], [122, 48, 0]];

/** `{ low, high, pixels }` of a block: what the ends mean, and the colours between them. */
export function scaleOf(block, values, ground) {
  if (isShare(block)) return { low: 0, high: 1, pixels: rising() };
  const largest = largestSize(values);
  if (isSize(block)) return { low: 0, high: largest, pixels: rising() };
  return { low: -largest, high: largest, pixels: diverging(rgbOf(ground)) };
}

export function isShare({ tensor }) {
  return tensor === "attention";
}

function isSize({ note }) {
  return note.startsWith("norm over");
}

/** The map `values` (rows x columns) as an image that a canvas draws. */
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
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function largestSize(values) {
  let largest = 0;
  for (const value of values) {
    if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  }
  return largest || 1;
}

function rising() {
  return Uint32Array.from({ length: 2 * STEPS + 1 }, (_, k) => opaquePixel(viridis(k / (2 * STEPS))));
}

/** Outwards darker on light ground, and lighter on dark. */
function diverging(ground) {
  const isDark = ground[0] + ground[1] + ground[2] < 384;
  const arm = ([near, far]) => (share) => {
    const outer = isDark ? mixed(near, [255, 255, 255], 0.45) : far;
    return share < 0.6 ? mixed(ground, near, share / 0.6) : mixed(near, outer, (share - 0.6) / 0.4);
  };
  const [below, above] = [arm(BLUE), arm(ORANGE)];
  return Uint32Array.from({ length: 2 * STEPS + 1 }, (_, k) => {
    const share = (k - STEPS) / STEPS;
    return opaquePixel(share < 0 ? below(-share) : above(share));
  });
}

function mixed(one, other, share) {
  return one.map((channel, k) => Math.round(channel + (other[k] - channel) * share));
}
