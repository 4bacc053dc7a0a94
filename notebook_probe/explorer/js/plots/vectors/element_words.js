/** An element of a vector in words: a bin, a head, an eigenvalue, a quantile. */

import { grouped, significant, THIN_SPACE } from "../../format.js";
import { isHistogram } from "./shown_values.js";

/**
 * Numbers of which a vector is, by how quantities are called: several of them are no channels.
 * @type {Array<[RegExp, string]>}
 */
const SPECTRA = [
  [/_eigs(_|$)/, "eigenvalue"],
  [/_singular_values$/, "singular value"],
];

/**
 * "eigenvalue" of a spectrum; "" of what has no word of its own.
 * @param {Pick<DecodedVectors, "quantity">} frame
 */
export function kindOfNumber({ quantity }) {
  return SPECTRA.find(([pattern]) => pattern.test(quantity))?.[1] ?? "";
}

/**
 * "−2 … −0.5", "head 5", "eigenvalue 5 of 64", "quantile 0.25": which element of a row.
 * @param {DecodedVectors} frame
 * @param {VectorRow} row
 * @param {number} element
 */
export function elementName(frame, row, element) {
  if (isHistogram(frame)) return binName(frame, row, element);
  if (frame.at.length) return `at ${significant(frame.at[element] ?? NaN)}`;
  if (frame.glyph === "dashes") return `head ${element}`;
  if (frame.glyph === "bars") return `channel ${element}`;
  return `${kindOfNumber(frame)} ${element + 1} of ${row.n}`.trimStart();
}

/**
 * Whether it counts what is not finite, and thus is no part of the axis.
 * @param {Pick<DecodedVectors, "low_edges" | "n_lanes">} frame
 * @param {number} element
 */
export function isLane({ low_edges: lows, n_lanes: lanes }, element) {
  return element >= lows.length - lanes;
}

/**
 * @param {DecodedVectors} frame
 * @param {VectorRow} row
 * @param {number} element
 */
function binName({ low_edges: lows, high_edges: highs, at, n_lanes: lanes }, row, element) {
  if (element >= lows.length - lanes) return lanes > 1 && element === lows.length - lanes ? "infinite" : "not finite";
  /** @type {(value: number | null, beyond: string) => string} */
  const edge = (value, beyond) => (value === null ? beyond : significant(value * row.scale));
  if (at[element] === 0 && lows[element] === highs[element]) return "0";
  return `${edge(lows[element], "−∞")} … ${edge(highs[element], "∞")}`;
}

/**
 * Beside an enlarged row: short.
 * @param {DecodedVectors} frame
 * @param {VectorRow} row
 * @param {number} element
 */
export function elementTick(frame, row, element) {
  if (isHistogram(frame)) {
    const { n_lanes: lanes, low_edges: lows, at } = frame;
    if (element >= lows.length - lanes) return binName(frame, row, element);
    return significant((at[element] ?? NaN) * row.scale, 2);
  }
  if (frame.at.length) return significant(frame.at[element] ?? NaN);
  if (frame.glyph === "curve") return element === 0 ? "largest" : String(element + 1);
  return elementName(frame, row, element);
}

/**
 * "8.09 %" of a share, "1.41 nat" of anything else, "312" of a count.
 * @param {DecodedVectors} frame
 * @param {number} value
 * @param {boolean} counts
 * @param {string} units
 */
export function elementValue(frame, value, counts, units) {
  if (isHistogram(frame)) {
    return counts ? grouped(value) : `${significant(100 * value)}${THIN_SPACE}%`;
  }
  return significant(value, 4) + (units === "1" ? "" : `${THIN_SPACE}${units}`);
}
