/** Common parts of both plots: the step range and the background. */

import { duration } from "../format.js";
import { homeFrame } from "../state.js";
import { stepScale } from "./scale.js";

/** @typedef {Pick<DrawnSeries, "n" | "x" | "first_step" | "last_step">} StepSeries */

export const AXIS_HEIGHT = 24;
const OF_TIME = { label: duration, least: 1e-9 };

/**
 * Room right of a plot: direct labels beside the lines, the colour bar beside the heat map.
 * @param {number} width
 */
export function rightMargin(width) {
  return Math.round(Math.min(190, Math.max(116, width * 0.26)));
}

/**
 * Steps both plots show: the window, else all that was recorded; null before the first value.
 * @param {PanelState} state
 */
export function stepRange(state) {
  if (state.selection.window)
    return { low: state.selection.window[0], high: state.selection.window[1] };
  /** @type {number[]} */
  const ends = [];
  const home = homeFrame(state);
  if (home?.columns) ends.push(home.first_step, home.end_step + 1);
  for (const series of state.lines?.series ?? []) {
    if (series.n) ends.push(series.first_step, series.last_step);
  }
  if (state.left?.heat && home?.columns) ends.push(state.left.heat.end_step + 1);
  for (const series of state.left?.lines?.series ?? []) if (series.n) ends.push(series.last_step);
  if (!ends.length) return null;
  const low = Math.min(...ends);
  return { low, high: Math.max(low + 1, ...ends) };
}

/**
 * @param {PanelState} state
 * @param {number} left
 * @param {number} right
 */
export function stepAxis(state, left, right) {
  const range = stepRange(state);
  return (
    range && stepScale(range.low, range.high, state.selection.window !== null, false, left, right)
  );
}

/**
 * The x axis of the lines: steps like the heat map, their logarithm, or time.
 * @param {PanelState} state
 * @param {StepSeries[]} drawn
 * @param {number} left
 * @param {number} right
 */
export function lineAxis(state, drawn, left, right) {
  const { x_axis: kind, log_x: log, window } = state.selection;
  if (kind === "step") {
    const range = stepRange(state);
    return range && stepScale(range.low, range.high, window !== null, log, left, right);
  }
  const ends = drawn.flatMap((series) => (series.n ? [series.x[0], series.x[series.n - 1]] : []));
  if (!state.lines || !ends.length) return null;
  const start = state.lines.x0;
  const [low, high] = [start + Math.min(...ends), start + Math.max(...ends)];
  return stepScale(low, Math.max(high, low + 0.1), false, log, left, right, OF_TIME);
}

/**
 * Step -> x of the lines and back; on a time axis by the longest series, linear between its ends.
 * @param {PanelState} state
 * @param {StepSeries[]} drawn
 * @returns {StepMapping}
 */
export function stepMapping(state, drawn) {
  if (state.selection.x_axis === "step") return { x: (step) => step, step: (x) => x };
  const most = Math.max(2, ...drawn.map(({ n }) => n));
  const longest = drawn.find(({ n }) => n === most);
  if (!state.lines || !longest) return { x: () => NaN, step: () => NaN };
  const start = state.lines.x0 + longest.x[0];
  const pace =
    (longest.x[longest.n - 1] - longest.x[0]) / (longest.last_step - longest.first_step || 1);
  return {
    x: (step) => start + (step - longest.first_step) * pace,
    step: (x) => longest.first_step + (x - start) / (pace || 1),
  };
}

/**
 * Tick labels under a plot and faint lines through it.
 * @param {CanvasRenderingContext2D} context
 * @param {Axis} axis
 * @param {Colours} colours
 * @param {number} top
 * @param {number} bottom
 * @param {boolean} grid
 */
export function paintStepAxis(context, axis, colours, top, bottom, grid) {
  context.font = colours.font;
  context.textAlign = "center";
  context.textBaseline = "top";
  let clear = -Infinity;
  for (const { value, label } of axis.ticks) {
    const x = Math.round(axis.place(value)) + 0.5;
    context.strokeStyle = colours.line;
    context.beginPath();
    context.moveTo(x, grid ? top : bottom);
    context.lineTo(x, bottom + 4);
    context.stroke();
    const half = context.measureText(label).width / 2 + 4;
    if (x - half < clear) continue;
    clear = x + half;
    context.fillStyle = colours.soft;
    context.fillText(label, x, bottom + 12); // below what marks the steps
  }
}
