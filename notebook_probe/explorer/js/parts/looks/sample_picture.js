/** What the chosen sample is, beside its number: the module's input as a small picture in grey. */

import { element, penOf, setAttribute, setHidden } from "../../dom.js";
import { opaquePixel } from "../../plots/colour.js";
import { rangeOf } from "../../plots/vectors/shown_values.js";
import { paintMap } from "./map_colours.js";

const SIDE_PX = 18;
const GREYS = Uint32Array.from({ length: 256 }, (_, grey) => opaquePixel([grey, grey, grey]));

export function createSamplePicture() {
  const el = element("canvas", { class: "nbp-look-sample", role: "img", hidden: "" });
  el.width = el.height = SIDE_PX * (devicePixelRatio || 1);

  return {
    el,
    /** `input` is the block of it, or undefined; what has one row is no picture. */
    show(input, numbers, sample) {
      const { height = 0, width = 0, n_samples: n = 0 } = input ?? {};
      setHidden(el, n < 1 || height < 2 || width < 2);
      if (el.hidden) return;
      const values = pixelsOf(input, numbers);
      const image = paintMap(values, height, width, { ...rangeOf(values, false), pixels: GREYS });
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

/** One number for each pixel: of several channels their norm. */
function pixelsOf({ places, offset, height, width }, numbers) {
  const size = height * width;
  if (places.length === 1) return numbers.subarray(offset, offset + size);
  const squares = new Float32Array(size);
  for (let k = 0; k < size * places.length; k++) squares[k % size] += numbers[offset + k] ** 2;
  return squares.map(Math.sqrt);
}
