/** An axis of a picture of runs: where each run is on it, its ticks, and ranges of it. */

import { significant } from "../../../js/format.js";
import { valueAt } from "../../../js/maps.js";
import { linearTicks, logTicks } from "../../../js/plots/ticks.js";

const WIDE_RATIO = 30; // of the largest value to the smallest one: logarithmic above it, as in `picture()`
const MOST_CATEGORIES = 12;
const N_TICKS = 4;
const MARKS = ["tags", "note"]; // of users: neither a setting nor a result
const SETTINGS = ["config.", "params.", "custom.", "train."];
const RESULTS = ["eval.", "best.", "loss.best", "loss.last", "last.", "loss.", "min.", "max.", "first."];

/** @param {ColumnKey} key */
const isFinite = (key) => typeof key === "number" && Math.abs(key) < Number.MAX_VALUE;

/** @param {{ at: number }} tick */
const isOnAxis = ({ at }) => at >= -1e-9 && at <= 1 + 1e-9;

/**
 * Numbers on a scale from their least to their largest one, else few texts as categories; null for
 * a column of one value, or one that no axis can show.
 * @param {TableColumn} column
 * @returns {RunAxis | null}
 */
function axisOf({ name, numeric, keys, texts }) {
  const values = /** @type {number[]} */ (keys.filter(isFinite));
  if (numeric) return new Set(values).size > 1 ? ofNumbers(name, values) : null;
  const kinds = [...new Set(texts.filter(Boolean))].sort();
  return kinds.length > 1 && kinds.length <= MOST_CATEGORIES ? ofCategories(name, kinds) : null;
}

/**
 * @param {string} name
 * @param {number[]} values
 * @returns {RunAxis}
 */
function ofNumbers(name, values) {
  const low = values.reduce((one, other) => Math.min(one, other));
  const high = values.reduce((one, other) => Math.max(one, other));
  const isLog = low > 0 && high >= WIDE_RATIO * low;
  const scaled = isLog ? Math.log : (/** @type {number} */ value) => value;
  const span = scaled(high) - scaled(low);
  /** @param {number} value */
  const share = (value) => (scaled(value) - scaled(low)) / span;
  /** @param {number} at */
  const valueAt = (at) => (isLog ? Math.exp(Math.log(low) + at * span) : low + at * span);
  const { ticks } = (isLog ? logTicks : linearTicks)(low, high, N_TICKS);
  return {
    name,
    isLog,
    ticks: ticks.map(({ value, label }) => ({ at: share(value), label })).filter(isOnAxis),
    at: (key) => (isFinite(key) ? share(Number(key)) : NaN),
    rangeOf: (from, to) => ({
      low: from <= 0 ? low : valueAt(from),
      high: to >= 1 ? high : valueAt(to),
      texts: null,
    }),
    sharesOf: (range) => [range.low, range.high].map((end) => Math.min(1, Math.max(0, share(end)))),
  };
}

/**
 * @param {string} name
 * @param {string[]} kinds
 * @returns {RunAxis}
 */
function ofCategories(name, kinds) {
  /** @param {string} text */
  const share = (text) => (kinds.indexOf(text) + 0.5) / kinds.length;
  return {
    name,
    isLog: false,
    ticks: kinds.map((label) => ({ at: share(label), label })),
    at: (_, text) => (kinds.includes(text) ? share(text) : NaN),
    rangeOf: (from, to) => ({
      low: 0,
      high: 0,
      texts: kinds.filter((kind) => share(kind) >= from && share(kind) <= to),
    }),
    sharesOf: ({ texts }) => {
      const shares = (texts ?? []).filter((text) => kinds.includes(text)).map(share);
      const half = 0.4 / kinds.length;
      return shares.length ? [Math.min(...shares) - half, Math.max(...shares) + half] : [0, 0];
    },
  };
}

/**
 * Axes of these columns: settings first, results last.
 * @param {TableRows} rows
 */
export function axesOf(rows) {
  return ranked(rows).flatMap((name) => axisOf(valueAt(rows.columns, name)) ?? []);
}

/**
 * The columns that are shown: settings first, results last.
 * @param {TableRows} rows
 */
export function ranked(rows) {
  const names = rows.shown.filter((name) => !MARKS.includes(name));
  return names.sort((one, other) => rankOf(one) - rankOf(other));
}

/** @param {string} name */
function rankOf(name) {
  if (SETTINGS.some((start) => name.startsWith(start))) return 0;
  return RESULTS.some((start) => name.startsWith(start)) ? 2 : 1;
}

/**
 * The axis of a name, else the first of a result, else the last one.
 * @param {RunAxis[]} axes
 * @param {string} name
 */
export function resultAmong(axes, name) {
  const chosen = axes.find((axis) => axis.name === name);
  return chosen ?? RESULTS.flatMap((start) => axes.find((axis) => axis.name.startsWith(start)) ?? [])[0] ?? axes.at(-1);
}

/**
 * Whether a run is in a range; one without a value is in none.
 * @param {ColumnRange} range
 * @param {ColumnKey} key
 * @param {string} text
 */
export function isWithin({ low, high, texts }, key, text) {
  if (texts) return texts.includes(text);
  return typeof key === "number" && key >= low && key <= high;
}

/** @param {ColumnRange} range */
export function rangeText({ low, high, texts }) {
  return texts ? texts.join(", ") || "none" : `${significant(low)} to ${significant(high)}`;
}
