/** The scale of the lines: by hand, for every value, or without single values far beyond all others. */

import { grouped, significant } from "../../format.js";
import { valueRange } from "./prepare.js";

const FEW = 30; // values among which none is called an outlier
const SHARE = 0.02; // of the values at each end that may be outliers
const FAR = 10; // ranges of the others that an outlier is away from them
const WORTH = 3; // times that the scale is wider with them

/**
 * As `valueRange`, with `beyond`: how many values are outside, and the farthest; null for none.
 * @param {PaintedSeries[]} prepared
 * @param {number} from
 * @param {number} to
 * @param {{ log: boolean, y_limits: [number, number] | null, outliers: boolean }} wish
 * @returns {ShownRange | null}
 */
export function shownRange(prepared, from, to, { log, y_limits: limits, outliers }) {
  const all = valueRange(prepared, from, to, log);
  if (!all) return null;
  if (limits && !(log && limits[0] <= 0)) return { ...all, low: limits[0], high: limits[1], exact: true, beyond: null };
  const whole = { ...all, exact: false, beyond: null };
  if (outliers) return whole;
  const values = prepared.map((series) => valuesBetween(series, from, to));
  const ends = values.filter(({ length }) => length).map(innerEnds);
  const low = Math.min(...ends.map(([least]) => least));
  const high = Math.max(...ends.map(([, most]) => most));
  const place = (/** @type {number} */ value) => (log ? Math.log10(value) : value);
  if (!(high > low) || place(all.high) - place(all.low) < WORTH * (high - low)) return whole;
  const outside = values.flatMap((some) => [...some].filter((one) => one < low || one > high));
  if (!outside.length) return whole;
  const middle = (low + high) / 2;
  const farthest = outside.reduce((most, one) => (Math.abs(one - middle) > Math.abs(most - middle) ? one : most));
  const value = (/** @type {number} */ one) => (log ? 10 ** one : one);
  const beyond = { n: outside.length, farthest: value(farthest) };
  return { ...whole, low: value(low), high: value(high), beyond };
}

/**
 * What the scale leaves out, in words; "" for nothing.
 * @param {ShownRange | null} range
 */
export function beyondText(range) {
  if (!range?.beyond) return "";
  const { n, farthest } = range.beyond;
  return `${n === 1 ? "1 value" : `${grouped(n)} values`} beyond the scale, to ${significant(farthest)}`;
}

/**
 * @param {PaintedSeries} series
 * @param {number} from
 * @param {number} to
 */
function valuesBetween({ u, v }, from, to) {
  return v.filter((one, k) => Number.isFinite(one) && u[k] >= from && u[k] <= to).sort();
}

/**
 * The least and the most of sorted values, without those far from all but a few.
 * @param {Float64Array} sorted
 * @returns {[number, number]}
 */
function innerEnds(sorted) {
  const last = sorted.length - 1;
  const [low, high] = [sorted[Math.ceil(last * SHARE)], sorted[Math.floor(last * (1 - SHARE))]];
  const far = FAR * (high - low);
  if (sorted.length < FEW || !far) return [sorted[0], sorted[last]];
  return [sorted.find((one) => one >= low - far) ?? low, sorted.findLast((one) => one <= high + far) ?? high];
}
