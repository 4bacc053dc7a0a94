/** Common parts of both plots: the step range and the background. */

import { duration, significant } from "../format.js";
import { homeFrame } from "../state.js";
import { alongKnots } from "./knots.js";
import { stepScale } from "./scale.js";

/** @typedef {Pick<DrawnSeries, "n" | "x" | "first_step" | "last_step">} StepSeries */

export const AXIS_HEIGHT = 24;

/**
 * The x axes of the lines: its scale, the word behind its last tick, and how a tooltip names an x.
 * @type {Record<LinesFrame["x_axis"], LineAxisKind>}
 */
const LINE_AXES = {
  step: { scaleOf: stepsLikeHeat, word: "", named: () => "" },
  time: { scaleOf: along({ label: duration, least: 1e-9 }), word: "", named: duration },
  epoch: {
    scaleOf: along({ label: (value) => significant(value, 6), least: 1e-9 }),
    word: "epoch",
    named: (x) => `epoch ${significant(x, 4)}`,
  },
};

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
 * The x axis of the lines: steps like the heat map, their logarithm, or what the frame has instead.
 * @param {PanelState} state
 * @param {StepSeries[]} drawn
 * @param {number} left
 * @param {number} right
 * @returns {Axis | null}
 */
export function lineAxis(state, drawn, left, right) {
  const kind = axisKind(state);
  const scale = kind.scaleOf(state, drawn, left, right);
  return scale && { ...scale, word: kind.word };
}

/** @param {Pick<PanelState, "lines">} state */
export function axisKind({ lines }) {
  return LINE_AXES[lines?.x_axis ?? "step"];
}

/** @type {LineAxisKind["scaleOf"]} */
function stepsLikeHeat(state, _, left, right) {
  const { log_x: log, window } = state.selection;
  const range = stepRange(state);
  return range && stepScale(range.low, range.high, window !== null, log, left, right);
}

/**
 * A scale from the first to the last point of the lines.
 * @param {{ label: (value: number) => string, least: number }} ticks
 * @returns {LineAxisKind["scaleOf"]}
 */
function along(ticks) {
  return (state, drawn, left, right) => {
    const ends = drawn.flatMap((series) => (series.n ? [series.x[0], series.x[series.n - 1]] : []));
    if (!state.lines || !ends.length) return null;
    const start = state.lines.x0;
    const [low, high] = [start + Math.min(...ends), start + Math.max(...ends)];
    return stepScale(low, Math.max(high, low + 0.1), false, state.selection.log_x, left, right, ticks);
  };
}

/**
 * Step -> x of the lines and back, as the frame has it, else by the longest series, linear between its ends.
 * @param {Pick<PanelState, "lines">} state
 * @param {StepSeries[]} drawn
 * @returns {StepMapping}
 */
export function stepMapping({ lines }, drawn) {
  if (!lines) return { x: (step) => step, step: (x) => x };
  if (lines.knots.length) return alongKnots(lines.knots);
  const most = Math.max(2, ...drawn.map(({ n }) => n));
  const longest = drawn.find(({ n }) => n === most);
  if (!longest) return { x: () => NaN, step: () => NaN };
  const start = lines.x0 + longest.x[0];
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
  if (!axis.word) return;
  context.textAlign = "left";
  context.fillText(axis.word, Math.max(clear, axis.place(axis.high) + 8), bottom + 12);
}
