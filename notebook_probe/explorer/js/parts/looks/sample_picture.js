/** Picture of the chosen sample, next to its number: the module's input as a small gray image. */

import { element, penOf, setAttribute, setHidden } from "../../dom.js";
import { opaquePixel } from "../../plots/colour.js";
import { rangeOf } from "../../plots/vectors/shown_values.js";
import { paintMap } from "./map_colours.js";

const SIDE_PX = 18;
const NO_RANGE = { low: 0, high: 0 }; // of what has no number in it
const GREYS = Uint32Array.from({ length: 256 }, (_, grey) => opaquePixel([grey, grey, grey]));

export function createSamplePicture() {
  const el = element("canvas", { class: "nbp-look-sample", role: "img", hidden: "" });
  el.width = el.height = SIDE_PX * (devicePixelRatio || 1);

  return {
    el,
    /**
     * `input` is the block of it, or undefined; what has one row is no picture.
     * @param {ShownBlock | undefined} input
     * @param {Float32Array} numbers
     * @param {number} sample
     */
    show(input, numbers, sample) {
      const isPicture = input && input.n_samples > 0 && input.height > 1 && input.width > 1;
      setHidden(el, !isPicture);
      if (!isPicture) return;
      const { height, width } = input;
      const values = pixelsOf(input, numbers);
      const image = paintMap(values, height, width, { ...(rangeOf(values, false) ?? NO_RANGE), pixels: GREYS });
      const words = `Input of sample ${sample}`;
      setAttribute(el, "aria-label", words);
      setAttribute(el, "title", input.places.length > 1 ? `${words}: norm over its channels` : words);
      const context = penOf(el);
      const scale = el.width / Math.max(height, width);
      context.clearRect(0, 0, el.width, el.height);
      context.drawImage(image, 0, 0, width * scale, height * scale);
    },
  };
}

/**
 * One number for each pixel: of several channels their norm.
 * @param {ShownBlock} block
 * @param {Float32Array} numbers
 */
function pixelsOf({ places, offset, height, width }, numbers) {
  const size = height * width;
  if (places.length === 1) return numbers.subarray(offset, offset + size);
  const squares = new Float32Array(size);
  for (let k = 0; k < size * places.length; k++) squares[k % size] += numbers[offset + k] ** 2;
  return squares.map(Math.sqrt);
}
