/** The series of other runs as the line plot draws them: in the colour of this run's, dashed by run. */

import { inTheirCharts } from "../../charts/arranged.js";
import { runName } from "./names.js";

/** @typedef {{ lines: DecodedLines, selection: PanelSelection, log: boolean }} BesideScale */

const DASHES = [
  [7, 3],
  [2, 3],
  [9, 3, 2, 3],
  [1, 4],
];

/**
 * Prepared like the series of this run, `{ name, dash, band, missing }` beside; [] without others.
 * @param {PanelState} state
 * @returns {BesideSeries[]}
 */
export function besideLines(state) {
  const message = state.parts.beside;
  const { selection, lines } = state;
  if (!message || !lines || !selection.others.length) return [];
  const numbers = floatsOf(message.buffers[0]);
  const owns = inTheirCharts(selection, lines.series);
  return message.series.flatMap((line) => {
    const own = owns.find((one) => one.module === line.module && one.quantity === line.quantity);
    const dash = line.run ? selection.others.indexOf(line.run) : 0;
    if (!own || dash < 0 || (line.run === "" && !selection.grouped)) return [];
    const name = line.run ? runName(state, line.run) : `mean of ${line.n_runs} runs`;
    const head = { ...line, name, colour: own.colour, dash: DASHES[dash], missing: why(state, line) };
    const log = own.log_y;
    return [{ ...head, chart: own.chart, log_y: log, ...placed(numbers, line, message.x0, { lines, selection, log }) }];
  });
}

/**
 * Why there is no line; "" where there is one.
 * @param {Pick<PanelState, "parts">} state
 * @param {BesideLine} line
 */
function why({ parts }, { run, n }) {
  if (n) return "";
  return parts.compare.refused[run] ?? "not recorded";
}

/**
 * @param {Float32Array} numbers
 * @param {BesideLine} line
 * @param {number} start
 * @param {BesideScale} scale
 */
function placed(numbers, { offset, n, banded }, start, { lines, selection, log }) {
  /** @type {(place: number) => Float32Array} */
  const part = (place) => numbers.subarray(offset + place * n, offset + (place + 1) * n);
  const u = Float64Array.from(part(0), (x) => (selection.log_x ? Math.log1p(x + start) : x + start));
  /** @type {(values: Float32Array) => Float64Array} */
  const inScale = (values) => Float64Array.from(values, (y) => (log ? logarithm(y) : y));
  const x = Float64Array.from(part(0), (one) => one + start - lines.x0);
  const band = banded ? { low: inScale(part(2)), high: inScale(part(3)) } : null;
  return { x, y: part(1), u, v: inScale(part(1)), band, average: { u: [], v: [] }, marks: [] };
}

/** @param {number} y */
function logarithm(y) {
  return y <= 0 ? -Infinity : Math.log10(y);
}

/** @param {ArrayBufferView} view */
function floatsOf(view) {
  const { buffer, byteOffset, byteLength } = view;
  return new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
}
