/** The line plot's frame, put together from what was saved: recorded values, or means of columns. */

import { decodeHeat, decodeLines } from "../frames.js";
import { alongKnots } from "../../plots/knots.js";
import { measuredStep } from "../../plots/heat/measured.js";
import { NOT_FINITE } from "../../plots/heat/states.js";
import { averageOf } from "./average.js";
import { inItsChart, settingsOf } from "../../charts/arranged.js";
import { createClock } from "./clock.js";
import { createColours } from "./colours.js";
import { chosenColor } from "../../options/series_colors.js";
import { formulaValues } from "./formulas.js";

/**
 * @typedef {Omit<LineSeries, "chart" | "colour" | "n" | "n_average" | "offset"> & SavedPoints & {
 *   chart?: number,
 *   average: SavedPoints | null,
 *   marks: number[],
 *   mean_of?: number,
 * }} SavedLine
 */

/** @typedef {{ x: number[], y: number[] | Float32Array }} SavedPoints */
/** @typedef {{ pieces: SavedPieces, recorded: Readonly<Record<string, string[]>> }} SavedSource */
/** @typedef {Omit<DecodedLines, "v" | "type" | "seq" | "layout" | "averaged">} SavedLines */
/** @typedef {{ told: Pick<SavedLines, "x_axis" | "knots">, place: (step: number) => number }} SavedAxis */

const BEFORE = "a formula that is drawn before the file is written is computed from all of them";

/** @type {Omit<SavedLine, "module" | "quantity"> & { average: SavedPoints }} */
const NO_LINE = {
  x: [],
  y: [],
  average: { x: [], y: [] },
  marks: [],
  n_rows: 0,
  first_step: 0,
  last_step: 0,
  last_value: null,
  n_nonfinite: 0,
  weight: 0,
  log_y: true,
};

/** @type {LinesFrame["knots"]} */
const STEPS = [
  [0, 0],
  [1, 1],
];

/** @type {SavedLines} */
const NO_FRAME = { smooth: 0, log_y: true, series: [], events: [], x0: 0, x_axis: "step", knots: STEPS, refused: {} };

/**
 * A function of the selection: its frame, `{ message, buffers }` as the kernel sends it.
 * @param {{
 *   pieces: SavedPieces,
 *   saved: SavedMessage,
 *   begun: PanelSelection,
 *   recorded: Readonly<Record<string, string[]>>,
 * }} parts
 */
export function createSavedLines({ pieces, saved, begun, recorded }) {
  const colours = createColours(saved.colours);
  const axes = axesOf(saved);

  /** @param {PanelSelection} selection */
  return async function frame(selection) {
    const kept = await pieces.read("lines", "");
    const lines = kept ? decodeLines(kept.message, kept.buffers) : NO_FRAME;
    const axis = axes[selection.x_axis] ?? axes.step;
    const found = await Promise.all(selection.series.map((pair) => lineOf(pair, lines, { pieces, recorded })));
    const drawn = found.map((one, k) => {
      const { log_y: log, chart } = inItsChart(selection, { ...one, chart: one.chart ?? chartLike(one, lines) });
      const { smooth } = settingsOf(selection, chart);
      const saved = settingsOf(begun, inItsChart(begun, { ...one, chart }).chart).smooth;
      const isAveraged = smooth === saved && log === one.log_y;
      return {
        ...one,
        log_y: log,
        chart,
        colour: chosenColor(selection, one) ?? colours.of(selection.series, k),
        average: isAveraged && one.average ? one.average : averaged(one, smooth, log),
      };
    });
    return packed({ ...lines, ...axis.told, smooth: selection.smooth }, drawn, axis.place);
  };
}

/**
 * The x axes that were saved: what a frame says of each, and the x of a step.
 * @param {SavedMessage} saved
 * @returns {{ step: SavedAxis } & Partial<Record<PanelSelection["x_axis"], SavedAxis>>}
 */
function axesOf({ clock, epochs }) {
  return {
    step: { told: { x_axis: "step", knots: STEPS }, place: (step) => step },
    time: { told: { x_axis: "time", knots: [] }, place: createClock(clock) },
    ...(epochs.length && { epoch: { told: { x_axis: "epoch", knots: epochs }, place: alongKnots(epochs).x } }),
  };
}

/**
 * One series over its steps: as it was recorded, or by columns of its heat map, or without a point.
 * @param {[string, string]} series
 * @param {SavedLines} lines
 * @param {SavedSource} source
 * @returns {Promise<SavedLine>}
 */
async function lineOf([module, quantity], lines, source) {
  const { series, x0 } = lines;
  const name = { module, quantity };
  const line = series.find((one) => one.module === module && one.quantity === quantity);
  /** @type {(x: ArrayLike<number>) => number[]} */
  const steps = (x) => Array.from(x, (one) => one + x0); // float32 is exact only near x0
  if (line?.n) {
    const average = { ...line.average, x: steps(line.average.x) };
    return { ...line, x: steps(line.x), marks: steps(line.marks), average };
  }
  if (quantity.startsWith("=")) return { ...name, ...(await formulaLine(quantity, lines, source)) };
  const frame = await source.pieces.read("heat", quantity);
  if (!frame) return { ...name, ...NO_LINE };
  const heat = decodeHeat(frame.message, frame.buffers);
  return { ...name, ...columnsOf(heat, heat.index.get(module)) };
}

/**
 * A formula that is typed here, of series whose every value was saved.
 * @param {string} formula
 * @param {SavedLines} lines
 * @param {SavedSource} source
 */
async function formulaLine(formula, lines, source) {
  try {
    const { steps, values } = await formulaValues(formula, source.recorded, async (module, quantity) => {
      const { x, y, marks, n_rows: n, mean_of: width } = await lineOf([module, quantity], lines, source);
      const name = `${quantity}@${module}`;
      if (width && width > 1) throw new Error(`only means of ${name} over steps are saved here; ${BEFORE}`);
      /** @type {Map<number, number>} */
      const known = new Map(marks.map((step) => [step, NaN]));
      x.forEach((step, k) => known.set(step, known.has(step) ? NaN : y[k]));
      if (known.size < n) throw new Error(`only ${known.size} of ${n} values of ${quantity} are saved here; ${BEFORE}`);
      const steps = [...known.keys()].sort((one, other) => one - other);
      return { steps, values: steps.map((step) => Number(known.get(step))) };
    });
    return recordedLine(steps, values);
  } catch (error) {
    return { ...NO_LINE, problem: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * @param {number[]} steps
 * @param {number[]} values
 */
function recordedLine(steps, values) {
  const finite = values.filter(Number.isFinite);
  const [last] = values.slice(-1);
  return {
    ...NO_LINE,
    x: steps,
    y: values,
    average: null,
    marks: steps.filter((_, k) => !Number.isFinite(values[k])),
    n_rows: steps.length,
    first_step: steps[0] ?? 0,
    last_step: steps.at(-1) ?? 0,
    last_value: Number.isFinite(last) ? last : null,
    n_nonfinite: values.length - finite.length,
    log_y: finite.every((value) => value > 0) && Math.max(...finite) > 1,
  };
}

/**
 * The chart for what was saved as a heat map: that of lines with such an axis, else the next one.
 * @param {Pick<SavedLine, "log_y">} line
 * @param {SavedLines} lines
 */
function chartLike({ log_y: log }, { series }) {
  const like = series.find((one) => one.log_y === log);
  return like ? like.chart : Math.max(-1, ...series.map(({ chart }) => chart)) + 1;
}

/**
 * The means of one row, each at the last step that was measured in its column.
 * @param {DecodedHeat} heat
 * @param {number | undefined} row
 */
function columnsOf(heat, row) {
  if (row === undefined) return NO_LINE;
  const { columns, mean, states, carried, first_step: first, last_step: last } = heat;
  const points = [...Array(columns).keys()].flatMap((column) => {
    const cell = row * columns + column;
    const step = carried[cell] ? null : measuredStep(heat, row, column);
    return step === null ? [] : [{ step, value: mean[cell], isLost: states[cell] === NOT_FINITE }];
  });
  if (!points.length) return NO_LINE;
  const newest = points[points.length - 1];
  const lost = points.filter(({ isLost }) => isLost);
  return {
    x: points.map(({ step }) => step),
    y: points.map(({ value }) => value),
    average: null,
    marks: lost.map(({ step }) => step),
    n_rows: points.length,
    first_step: points[0].step,
    last_step: newest.step,
    last_value: Number.isFinite(newest.value) ? newest.value : null,
    n_nonfinite: lost.length,
    weight: 0,
    log_y: heat.log,
    mean_of: (last + 1 - first) / columns,
  };
}

/**
 * @param {SavedLine} line
 * @param {number} smooth
 * @param {boolean} log
 */
function averaged({ x, y, n_rows: rows }, smooth, log) {
  if (!smooth || !x.length) return NO_LINE.average;
  return { x, y: averageOf(y, smooth, Math.max(1, rows / x.length), log) };
}

/**
 * One buffer: of each series x, y, and those of its average; x relative to the first of all.
 * @param {SavedLines} lines
 * @param {Array<SavedLine & { chart: number, colour: number, average: SavedPoints }>} drawn
 * @param {(step: number) => number} place
 */
function packed(lines, drawn, place) {
  const begins = drawn.flatMap(({ x }) => x.slice(0, 1)).map(place);
  const x0 = begins.length ? Math.min(...begins) : 0;
  /** @type {(x: number[]) => number[]} */
  const placed = (x) => x.map((one) => place(one) - x0);
  /** @type {number[]} */
  const numbers = [];
  const series = drawn.map(({ x, y, average, marks, ...told }) => {
    const offset = numbers.length;
    for (const part of [placed(x), y, placed(average.x), average.y]) for (const one of part) numbers.push(one);
    return { ...told, n: x.length, n_average: average.x.length, offset, marks: placed(marks) };
  });
  const events = lines.events.map(([at, ...rest]) => [place(at + lines.x0) - x0, ...rest]);
  const { log_y, smooth, x_axis, knots, refused } = lines;
  const message = { type: "lines", log_y, smooth, averaged: 1, x0, x_axis, knots, refused, series, events };
  return { message, buffers: [new DataView(Float32Array.from(numbers).buffer)] };
}
