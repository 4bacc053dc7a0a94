/** The pictures of all rows as one image, a pixel per cell. */

import { penOf } from "../../dom.js";
import { NOT_FINITE_COLOUR, opaquePixel, rgbOf } from "../colour.js";
import { colourMap } from "../colour_maps.js";
import { valueScale } from "../scale.js";
import { lineOf, rangeOf, shownCells } from "./shown_values.js";

/** @typedef {{ low: number, high: number }} ValueRange */
/** @typedef {{ log: boolean, counts: boolean, own: boolean, ground: string }} VectorWish */

/**
 * `{ image, tops, map, values }`; `values` is null where every row has a scale of its own.
 * @param {DecodedVectors} frame
 * @param {VectorWish} wish
 * @returns {VectorPicture}
 */
export function vectorPicture(frame, { log, counts, own, ground }) {
  const map = colourMap(frame.colours, rgbOf(ground));
  const cells = frame.rows.map((row) => shownCells(frame, row, counts));
  const common = own ? null : scaleOf(commonRange(frame, cells, log, counts), frame, log);
  /** @type {number[]} */
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
  /** @type {Map<string, [number, number]>} */
  const index = new Map(frame.rows.map((row, k) => [row.module, [tops[k], row.n]]));
  return { image: canvas, tops, map, values: common, frame, placeOf: (path) => index.get(path) ?? null };
}

/**
 * @param {DecodedVectors} frame
 * @param {Float32Array[]} cells
 * @param {boolean} log
 * @param {boolean} counts
 * @returns {ValueRange | null}
 */
function commonRange(frame, cells, log, counts) {
  const { low, high } = frame;
  const known = low !== null && high !== null && (!log || low > 0);
  if (known && !counts && log === frame.log) return { low, high };
  const ranges = cells.flatMap((one) => rangeOf(one, log) ?? []);
  if (!ranges.length) return null;
  return {
    low: Math.min(...ranges.map(({ low }) => low)),
    high: Math.max(...ranges.map(({ high }) => high)),
  };
}

/**
 * @param {ValueRange | null} range
 * @param {DecodedVectors} frame
 * @param {boolean} log
 */
function scaleOf(range, { colours }, log) {
  const { low, high } = range ?? { low: 0.1, high: 1 };
  return valueScale(colours === "share" && !log ? 0 : low, high, log, 0, 255, 3);
}

/**
 * @param {Uint32Array} pixels
 * @param {Float32Array} cells
 * @param {{ frame: DecodedVectors, row: VectorRow, top: number }} place
 * @param {Axis} scale
 * @param {Uint32Array} colours
 */
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
