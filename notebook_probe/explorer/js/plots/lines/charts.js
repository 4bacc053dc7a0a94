/** The lines in charts above each other: those of one chart share a value axis, all charts the steps. */

import { inItsChart, settingsOf } from "../../charts/arranged.js";
import { AXIS_HEIGHT } from "../step_axis.js";
import { exactScale, laneScale, valueScale } from "../scale.js";
import { shownRange } from "./shown_range.js";

export const TITLE_PX = 18; // above each chart
const BETWEEN_PX = 26; // with room for half of the lowest tick label, too
const TICK_PX = 44; // between two ticks of a value axis, at least

const EMPTY = { low: 0, high: 1, lane: false, exact: false, beyond: null };
const OTHERS_PX = 140; // height of a chart below those that were arranged

/**
 * The charts from the top, each with its part of the box. One that was arranged is there without a
 * value, too; others are not.
 * @param {ChartedLines} drawn
 * @param {Axis} axis
 * @param {Box} box
 * @param {PanelSelection} selection
 * @returns {LineChart[]}
 */
export function chartsOf(drawn, axis, box, selection) {
  const arranged = selection.charts.map((_, number) => number);
  const numbers = [...new Set([...arranged, ...chartNumbers(drawn.prepared)])].sort((one, other) => one - other);
  const [from, to] = [axis.forward(axis.low), axis.forward(axis.high)];
  const parts = numbers.flatMap((number, at) => {
    const part = partOf(drawn, number);
    const settings = settingsOf(selection, arranged.length ? number : at);
    const log = part.prepared[0]?.log_y ?? false;
    const range = shownRange([...part.prepared, ...part.beside, ...part.back], from, to, { ...settings, log });
    const isEmpty = !range;
    if (isEmpty && number >= arranged.length) return [];
    return [{ ...part, number, log, isEmpty, range: range ?? EMPTY, height: settings.height || OTHERS_PX }];
  });
  const room = box.bottom - box.top - BETWEEN_PX * (parts.length - 1);
  const share = room / parts.reduce((sum, { height }) => sum + height, 0);
  let end = box.top - BETWEEN_PX;
  return parts.map(({ height, ...part }, k) => {
    const top = Math.round(end + BETWEEN_PX);
    end += BETWEEN_PX + height * share;
    const place = { ...box, top, bottom: k === parts.length - 1 ? box.bottom : Math.round(end) };
    const values = scaleOf(part.range, part.log, place);
    return { ...part, box: place, values: part.isEmpty ? { ...values, ticks: [] } : values };
  });
}

/**
 * One of the charts, in the room of all.
 * @param {LineChart[]} charts
 * @param {number} at
 * @param {Box} box
 * @returns {LineChart[]}
 */
export function alone(charts, at, box) {
  return charts
    .filter((_, place) => place === at)
    .map((chart) => {
      const values = scaleOf(chart.range, chart.log, box);
      return { ...chart, box, values: chart.isEmpty ? { ...values, ticks: [] } : values };
    });
}

/**
 * Pixels that charts which were arranged take, with everything around them; 0 without any.
 * @param {Pick<PanelState, "selection" | "lines">} state
 */
export function heightOfCharts({ selection, lines }) {
  const { charts } = selection;
  if (!charts.length) return 0;
  const drawn = (lines?.series ?? []).map((one) => inItsChart(selection, one));
  const n = chartNumbers(drawn).filter((number) => number >= charts.length).length;
  const heights = charts.reduce((sum, { height }) => sum + height, n * OTHERS_PX);
  return heights + TITLE_PX + AXIS_HEIGHT + BETWEEN_PX * (charts.length + n - 1);
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
