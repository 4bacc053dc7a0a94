/** The lines in charts above each other: those of one chart share a value axis, all charts the steps. */

import { exactScale, laneScale, valueScale } from "../scale.js";
import { shownRange } from "./shown_range.js";

export const TITLE_PX = 18; // above each chart
const BETWEEN_PX = 26; // with room for half of the lowest tick label, too
const TICK_PX = 44; // between two ticks of a value axis, at least

/**
 * The charts from the top, each with its part of the box; one without a value has none.
 * @param {ChartedLines} drawn
 * @param {Axis} axis
 * @param {Box} box
 * @param {Pick<PanelSelection, "y_limits" | "outliers">} selection
 * @returns {LineChart[]}
 */
export function chartsOf(drawn, axis, box, { y_limits: limits, outliers }) {
  const numbers = chartNumbers(drawn.prepared);
  const [from, to] = [axis.forward(axis.low), axis.forward(axis.high)];
  const parts = numbers.flatMap((number) => {
    const part = partOf(drawn, number);
    const log = part.prepared[0].log_y;
    const ofChart = { log, y_limits: number === numbers[0] ? limits : null, outliers };
    const range = shownRange([...part.prepared, ...part.beside, ...part.back], from, to, ofChart);
    return range ? [{ ...part, number, log, range }] : [];
  });
  const height = (box.bottom - box.top + BETWEEN_PX) / parts.length;
  return parts.map((part, k) => {
    const top = Math.round(box.top + k * height);
    const bottom = k === parts.length - 1 ? box.bottom : Math.round(top + height) - BETWEEN_PX;
    const place = { ...box, top, bottom };
    return { ...part, box: place, values: scaleOf(part.range, part.log, place) };
  });
}

/**
 * @param {Array<{ chart: number }>} series
 */
export function chartNumbers(series) {
  return [...new Set(series.map(({ chart }) => chart))].sort((one, other) => one - other);
}

/**
 * @param {ChartedLines} drawn
 * @param {number} number
 * @returns {ChartedLines}
 */
function partOf({ prepared, beside, back }, number) {
  /** @type {(one: { chart: number }) => boolean} */
  const isHere = ({ chart }) => chart === number;
  return { prepared: prepared.filter(isHere), beside: beside.filter(isHere), back: back.filter(isHere) };
}

/**
 * @param {ShownRange} range
 * @param {boolean} log
 * @param {Box} box
 */
function scaleOf({ low, high, lane, exact }, log, { top, bottom }) {
  const count = Math.max(2, Math.floor((bottom - top) / TICK_PX));
  if (lane && !exact) return laneScale(low, high, bottom, top, count);
  return (exact ? exactScale : valueScale)(low, high, log, bottom, top, count);
}
