/** The line plot in its place: frames in, hover, zoom, data attributes out. */

import { emphasize, isDimmed } from "../../charts/emphasis.js";
import { inTheirCharts } from "../../charts/arranged.js";
import { createChartBars } from "../../charts/chart_bars.js";
import { createEnlarged } from "../../charts/enlarged.js";
import { createPins, paintPins } from "../../charts/pins.js";
import { createRises } from "../../charts/rises.js";
import { createLevels } from "../../parts/breaks/levels.js";
import { besideLines } from "../../parts/compare/beside_lines.js";
import { leftSeries } from "../../parts/history/left.js";
import { hasSeries } from "../../state.js";
import { createPlot, describeAxes, hideTip, placePin, showNote, showTip } from "../plot.js";
import { createPointed } from "../pointed.js";
import { trackPointer } from "../pointer.js";
import { AXIS_HEIGHT, lineAxis, rightMargin, stepMapping } from "../step_axis.js";
import { placeMarks, stepMarks } from "../step_marks.js";
import { createStepWindow } from "../step_window.js";
import { alone, chartNumbers, chartsOf, heightOfCharts, TITLE_PX } from "./charts.js";
import { averageText, axisText, describeCharts, describeLines, whyEmpty } from "./description.js";
import { isLogged, lineLabels } from "./label_names.js";
import { paintLines } from "./paint.js";
import { prepareLines } from "./prepare.js";
import { beyondText } from "./shown_range.js";
import { lineTooltip } from "./tooltip.js";

const NEAR_PX = 6; // a line is pointed at

/** @param {PanelParts} parts */
export function createLinePlot(parts) {
  const { state, theme, selection, link, fail, signal } = parts;
  const plot = createPlot({
    className: "nbp-lines",
    label: "Series over steps",
    paint,
    resized: (width) => link.resized("lines", width - state.gutter - rightMargin(width)),
    fail,
    signal,
  });
  const levels = createLevels({ state, link });
  const enlarged = createEnlarged(parts);
  /** @type {PreparedSeries[] | null} */
  let prepared = null;
  /** @type {BesideSeries[]} */
  let beside = []; // the same of other runs
  /** @type {PreparedSeries[]} */
  let back = []; // all steps, behind those of a window that is being left
  /** @type {PaintedLines | null} */
  let painted = null; // { axis, values, box, mapping, prepared } of the last paint

  /** @type {Map<number, ReturnType<typeof lineLabels>>} */
  let labels = new Map(); // chart -> the labels of its lines
  let wish = ""; // what `prepared` was made for
  let pointsHere = false;

  const refresh = () => {
    prepared = null;
    plot.request();
  };
  for (const topic of ["lines", "beside", "compare", "left", "model"]) state.on(topic, refresh);
  state.on("selection", () => {
    const { window, ...others } = state.selection;
    plot.el.style.setProperty("--nbp-charts", `${heightOfCharts(state)}px`);
    const now = JSON.stringify([others, window !== null]); // another window places the same points elsewhere
    if (now !== wish) refresh();
    else plot.request();
    wish = now;
  });
  const topics = ["theme", "gutter", "heat", "status", "alerts", "breaks", "looked", "enlarged", "emphasis"];
  for (const topic of topics) state.on(topic, plot.request);
  state.on("cursor", showCursor);
  const marked = () => painted && { marks: painted.marks, foot: painted.box.bottom };
  const pointed = createPointed({ state, plot, marked });
  const stepAt = (/** @type {number} */ x) => painted && painted.mapping.step(painted.axis.value(x));
  const stepWindow = createStepWindow({ state, selection, stepAt });
  const pins = createPins({ state, theme, painted: () => painted, signal });
  const rise = createRises(state, () => painted, pins.pin);
  const bars = createChartBars(parts, { enlarge: enlarged.enter, rise });
  plot.el.append(levels.el, bars.el);
  state.on("pins", plot.request);
  const calls = { ...pointed, ...stepWindow, hover, click };
  trackPointer(plot, () => painted && { ...painted.box, foot: painted.box.bottom }, calls, signal);

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  function paint(context, width, height) {
    const colours = theme.read();
    const box = {
      left: state.gutter,
      right: width - rightMargin(width),
      top: TITLE_PX,
      bottom: height - AXIS_HEIGHT,
    };
    if (!prepared) {
      prepared = state.lines ? prepareLines(chosen(state, state.lines), { log_x: state.selection.log_x }) : [];
      beside = besideLines(state);
      back = prepareBack(state);
      labels = labelsOf(state, prepared);
    }
    const axis = lineAxis(state, prepared, box.left, box.right);
    const all = axis ? chartsOf({ prepared, beside, back }, axis, box, state.selection) : [];
    state.charts = all;
    const charts = axis && state.enlarged !== null ? alone(all, state.enlarged, box) : all;
    painted = null;
    describeLines(plot.canvas, prepared, beside, axisText(state));
    describeCharts(plot.canvas, charts);
    showNote(plot, charts.length ? "" : whyEmpty(state, prepared));
    if (axis && charts.length && state.lines) {
      const { x0 } = state.lines;
      const mapping = stepMapping(state, prepared);
      const marks = placeMarks(stepMarks(state, mapping), (mark) => axis.place(mark.x), box);
      for (const chart of charts) {
        const { label = () => "", title = "" } = labels.get(chart.number) ?? {};
        const [first, last] = [chart === charts[0], chart === charts.at(-1)];
        const known = (/** @type {PaintedSeries} */ one) => isLogged(state, one.module, one.quantity);
        const dims = (/** @type {PaintedSeries} */ one) => isDimmed(state, one);
        const place = { axis, colours, marks: last ? marks : null, x0, width };
        const view = { ...chart, ...place, label, isLogged: known, isDimmed: dims };
        paintLines(context, view);
        context.fillStyle = colours.soft;
        context.textAlign = "left";
        context.textBaseline = "top";
        const { others, aligned } = state.selection;
        const ofAll = first ? [axisText(state), averageText(state), others.length && `other runs by ${aligned}`] : [];
        if (chart.isEmpty) paintEmpty(context, chart);
        const notes = [title, beyondText(chart.range), ...ofAll];
        context.fillText(notes.filter(Boolean).join("   "), box.left, chart.box.top - TITLE_PX);
      }
      describeAxes(plot.canvas, box, axis);
      painted = { axis, charts, box, prepared: [...prepared, ...beside], mapping, marks };
      paintPins(context, state.pins, painted, colours);
    }
    levels.place(painted);
    bars.place(painted);
    enlarged.describe();
    pins.show();
    if (state.lines) link.painted("lines", state.lines.seq);
    showCursor();
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {boolean} isSecond
   */
  function click(x, y, isSecond) {
    if (!pointed.clickMark(x, y)) pins.click(x, isSecond);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  function hover(x, y) {
    if (pointed.hoverMark(x, y)) return;
    if (!painted || x < painted.box.left - 4 || x > painted.box.right + 4) return pointed.leave();
    const step = painted.mapping.step(painted.axis.value(x));
    pointed.point({ step, row: null, from: "lines", y });
  }

  function showCursor() {
    const { cursor } = state;
    if (cursor?.from !== "lines" && pointsHere) emphasize(state, null);
    pointsHere = cursor?.from === "lines";
    const placeOf = (/** @type {number} */ step) => painted?.axis.place(painted.mapping.x(step)) ?? NaN;
    const isFree = pointed.placeLine(painted && painted.box, placeOf);
    if (!isFree || !painted || !cursor) return;
    const { box } = painted;
    if (cursor.from !== "lines") hideTip(plot);
    else listValues(painted, placeOf(cursor.step), cursor.y ?? (box.top + box.bottom) / 2);
  }

  /**
   * @param {PaintedLines} shown
   * @param {number} x
   * @param {number} y
   */
  function listValues(shown, x, y) {
    const tip = lineTooltip(state, theme, shown, x, y);
    if (!tip) return hideTip(plot);
    const { closest, rows } = tip;
    const { module, quantity } = closest.series;
    emphasize(state, Math.abs(closest.y - y) <= NEAR_PX ? { module, quantity } : null);
    if (closest.y >= closest.box.top && closest.y <= closest.box.bottom)
      placePin(plot, closest.x, closest.y);
    return showTip(plot, x, y, rows);
  }

  return { el: plot.el, canvas: plot.canvas, pins, bar: enlarged.bar };
}

/**
 * A chart without a value says why.
 * @param {CanvasRenderingContext2D} context
 * @param {LineChart} chart
 */
function paintEmpty(context, { prepared, box }) {
  context.save();
  context.textAlign = "center";
  context.textBaseline = "middle";
  const text = prepared.length ? "No finite value here." : "Add series to this chart with ⋯";
  context.fillText(text, (box.left + box.right) / 2, (box.top + box.bottom) / 2);
  context.strokeStyle = context.fillStyle;
  context.globalAlpha = 0.3;
  context.strokeRect(box.left + 0.5, box.top + 0.5, box.right - box.left - 1, box.bottom - box.top - 1);
  context.restore();
}

/**
 * All steps of the drawn series, coarser, where the axis of a window shows more than came for it.
 * @param {PanelState} state
 */
function prepareBack(state) {
  const { whole, lines, selection } = state;
  if (!selection.window || !whole?.lines || whole.lines === lines) return [];
  // Only steps are where they were in a frame of other steps.
  if (lines?.x_axis !== "step" || whole.lines.x_axis !== "step") return [];
  return prepareLines(chosen({ ...state, left: null }, whole.lines), { log_x: selection.log_x });
}

/**
 * The frame without series that were removed here a moment ago.
 * @param {PanelState} state
 * @param {DecodedLines} lines
 */
function chosen(state, lines) {
  const series = lines.series.filter((one) =>
    hasSeries(state.selection, one.module, one.quantity),
  );
  const all = [...series, ...leftSeries(state)];
  return { ...lines, series: inTheirCharts(state.selection, all) };
}

/**
 * @param {PanelState} state
 * @param {PreparedSeries[]} prepared
 */
function labelsOf(state, prepared) {
  const of = (/** @type {number} */ number) => prepared.filter(({ chart }) => chart === number);
  return new Map(chartNumbers(prepared).map((number) => [number, lineLabels(state, of(number))]));
}
