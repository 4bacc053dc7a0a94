/** The line plot in its place: frames in, hover, zoom, data attributes out. */

import { setAttribute } from "../../dom.js";
import { createLevels } from "../../parts/breaks/levels.js";
import { besideLines } from "../../parts/compare/beside_lines.js";
import { leftSeries } from "../../parts/history/left.js";
import { hasSeries, isLogY } from "../../state.js";
import { createPlot, describeAxes, hideTip, placePin, showNote, showTip } from "../plot.js";
import { createPointed } from "../pointed.js";
import { trackPointer } from "../pointer.js";
import { exactScale, laneScale, valueScale } from "../scale.js";
import { AXIS_HEIGHT, lineAxis, rightMargin, stepMapping } from "../step_axis.js";
import { placeMarks, stepMarks } from "../step_marks.js";
import { createStepWindow } from "../step_window.js";
import { averageText, describeLines, whyEmpty } from "./description.js";
import { isLogged, lineLabels } from "./label_names.js";
import { paintLines } from "./paint.js";
import { prepareLines } from "./prepare.js";
import { beyondText, shownRange } from "./shown_range.js";
import { lineTooltip } from "./tooltip.js";

/** @param {Pick<PanelParts, "state" | "theme" | "selection" | "link" | "fail" | "signal">} parts */
export function createLinePlot({ state, theme, selection, link, fail, signal }) {
  const plot = createPlot({
    className: "nbp-lines",
    label: "Series over steps",
    paint,
    resized: (width) => link.resized("lines", width - state.gutter - rightMargin(width)),
    fail,
    signal,
  });
  const levels = createLevels({ state, link });
  plot.el.append(levels.el);
  /** @type {PreparedSeries[] | null} */
  let prepared = null;
  /** @type {BesideSeries[]} */
  let beside = []; // the same of other runs
  /** @type {PreparedSeries[]} */
  let back = []; // all steps, behind those of a window that is being left
  /** @type {PaintedLines | null} */
  let painted = null; // { axis, values, box, mapping, prepared } of the last paint

  let labels = { label: (/** @type {PaintedSeries} */ _) => "", title: "" };
  let wish = ""; // what `prepared` was made for

  const refresh = () => {
    prepared = null;
    plot.request();
  };
  for (const topic of ["lines", "beside", "compare", "left", "model"]) state.on(topic, refresh);
  state.on("selection", () => {
    const { window, ...others } = state.selection;
    const now = JSON.stringify([others, window !== null]); // another window places the same points elsewhere
    if (now !== wish) refresh();
    else plot.request();
    wish = now;
  });
  const topics = ["theme", "gutter", "heat", "status", "alerts", "breaks", "looked"];
  for (const topic of topics) state.on(topic, plot.request);
  state.on("cursor", showCursor);
  const marked = () => painted && { marks: painted.marks, foot: painted.box.bottom };
  const pointed = createPointed({ state, plot, marked });
  const stepAt = (/** @type {number} */ x) => painted && painted.mapping.step(painted.axis.value(x));
  const stepWindow = createStepWindow({ state, selection, stepAt });
  const calls = { ...pointed, ...stepWindow, hover, click: pointed.clickMark };
  trackPointer(plot, () => painted && { ...painted.box, foot: painted.box.bottom }, calls, signal);

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  function paint(context, width, height) {
    const log = isLogY(state);
    const colours = theme.read();
    const box = {
      left: state.gutter,
      right: width - rightMargin(width),
      top: 18,
      bottom: height - AXIS_HEIGHT,
    };
    if (!prepared) {
      prepared = state.lines ? prepareLines(chosen(state, state.lines), { ...state.selection, log_y: log }) : [];
      beside = besideLines(state, log);
      back = prepareBack(state, log);
      labels = lineLabels(state, prepared);
    }
    const axis = lineAxis(state, prepared, box.left, box.right);
    const all = [...prepared, ...beside, ...back];
    const range = axis && shownRange(all, axis.forward(axis.low), axis.forward(axis.high), { ...state.selection, log });
    painted = null;
    describeLines(plot.canvas, prepared, beside);
    setAttribute(plot.canvas, "data-beyond", beyondText(range) || null);
    showNote(plot, range ? "" : whyEmpty(state, prepared));
    if (axis && range && state.lines) {
      const count = Math.floor((box.bottom - box.top) / 44);
      const values = range.lane && !range.exact
        ? laneScale(range.low, range.high, box.bottom, box.top, count)
        : (range.exact ? exactScale : valueScale)(range.low, range.high, log, box.bottom, box.top, count);
      const { x0 } = state.lines;
      const { label, title } = labels;
      const mapping = stepMapping(state, prepared);
      const marks = placeMarks(stepMarks(state, mapping), (mark) => axis.place(mark.x), box);
      paintLines(context, {
        axis,
        values,
        box,
        colours,
        prepared,
        beside,
        back,
        marks,
        x0,
        label,
        isLogged: ({ module, quantity }) => isLogged(state, module, quantity),
        width,
      });
      context.fillStyle = colours.soft;
      context.textAlign = "left";
      context.textBaseline = "top";
      const { others, aligned } = state.selection;
      const notes = [title, averageText(state), beyondText(range), others.length && `other runs by ${aligned}`];
      context.fillText(notes.filter(Boolean).join("   "), box.left, 0);
      describeAxes(plot.canvas, box, axis);
      painted = { axis, values, box, prepared: [...prepared, ...beside], mapping, marks };
    }
    levels.place(painted);
    if (state.lines) link.painted("lines", state.lines.seq);
    showCursor();
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
    if (closest.y >= shown.box.top && closest.y <= shown.box.bottom)
      placePin(plot, closest.x, closest.y);
    return showTip(plot, x, y, rows);
  }

  return { el: plot.el, canvas: plot.canvas };
}

/**
 * All steps of the drawn series, coarser, where the axis of a window shows more than came for it.
 * @param {PanelState} state
 * @param {boolean} log
 */
function prepareBack(state, log) {
  const { whole, lines, selection } = state;
  if (!selection.window || selection.x_axis !== "step" || !whole?.lines || whole.lines === lines) return [];
  return prepareLines(chosen({ ...state, left: null }, whole.lines), { ...selection, log_y: log });
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
  return { ...lines, series: [...series, ...leftSeries(state)] };
}
