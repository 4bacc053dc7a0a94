/** The pictures of all rows as one image, a pixel per cell. */

import { penOf } from "../../dom.js";
import { NOT_FINITE_COLOUR, opaquePixel, rgbOf } from "../colour.js";
import { colourMap } from "../colour_maps.js";
import { valueScale } from "../scale.js";
import { lineOf, rangeOf, shownCells } from "./shown_values.js";

/** `{ image, tops, map, values }`; `values` is null where every row has a scale of its own. */
export function vectorPicture(frame, { log, counts, own, ground }) {
  const map = colourMap(frame.colours, rgbOf(ground));
  const cells = frame.rows.map((row) => shownCells(frame, row, counts));
  const common = own ? null : scaleOf(commonRange(frame, cells, log, counts), frame, log);
  const tops = [];
  let height = 0;
  for (const row of frame.rows) {
    tops.push(height);
    height += row.n;
  }
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.max(1, frame.columns), Math.max(1, height)];
  const context = penOf(canvas);
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  frame.rows.forEach((row, k) => {
    const scale = common ?? scaleOf(rangeOf(cells[k], log), frame, log);
    fill(pixels, cells[k], { frame, row, top: tops[k] }, scale, map.pixels);
  });
  context.putImageData(image, 0, 0);
  const index = new Map(frame.rows.map((row, k) => [row.module, [tops[k], row.n]]));
  return { image: canvas, tops, map, values: common, frame, placeOf: (path) => index.get(path) ?? null };
}

function commonRange(frame, cells, log, counts) {
  const fits = !counts && frame.low !== null && (!log || frame.low > 0) && log === frame.log;
  if (fits) return frame;
  const ranges = cells.map((one) => rangeOf(one, log)).filter(Boolean);
  if (!ranges.length) return null;
  return {
    low: Math.min(...ranges.map(({ low }) => low)),
    high: Math.max(...ranges.map(({ high }) => high)),
  };
}

function scaleOf(range, { colours }, log) {
  const { low, high } = range ?? { low: 0.1, high: 1 };
  return valueScale(colours === "share" && !log ? 0 : low, high, log, 0, 255, 3);
}

/** @param {Colours} colours */
function fill(pixels, cells, { frame, row, top }, { forward, factor, offset }, colours) {
  const { columns } = frame;
  const notFinite = opaquePixel(rgbOf(NOT_FINITE_COLOUR));
  for (let element = 0; element < row.n; element++) {
    const line = (top + lineOf(frame, row, element)) * columns;
    for (let column = 0; column < columns; column++) {
      const value = cells[element * columns + column];
      if (Number.isNaN(value)) continue;
      const place = Math.round(forward(value) * factor + offset);
      pixels[line + column] =
        value === Infinity ? notFinite : colours[place > 0 ? Math.min(255, place) : 0];
    }
  }
}
