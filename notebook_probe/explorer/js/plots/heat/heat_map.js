/** The heat map in its place: frames in, hover, a click draws a series, a drag zooms. */

import { emphasize } from "../../charts/emphasis.js";
import { setHidden } from "../../dom.js";
import { heatFrame, showsVectors, usualOf } from "../../state.js";
import { createPlot, describeAxes, hideTip, showNote, showTip } from "../plot.js";
import { createPointed } from "../pointed.js";
import { trackPointer } from "../pointer.js";
import { AXIS_HEIGHT, rightMargin, stepAxis, stepMapping } from "../step_axis.js";
import { paintMarks, placeMarks, stepMarks } from "../step_marks.js";
import { createStepWindow } from "../step_window.js";
import { partedSteps } from "../../parts/compare/partings.js";
import { besideWords, describeHeat, shownAt, tipOf, whyNoHeat } from "./cell_words.js";
import { createOutlines } from "./outlines.js";
import { paintHeat } from "./paint.js";
import { backPicture, heatPicture, isCurrent, leftPicture } from "./picture.js";
import { gutterWidth, rowNames } from "./row_names.js";

const TALLEST_ROW = 64;

/** @param {Pick<PanelParts, "state" | "theme" | "selection" | "link" | "fail" | "signal">} parts */
export function createHeatMap({ state, theme, selection, link, fail, signal }) {
  const plot = createPlot({
    className: "nbp-heat",
    label: "Modules over steps",
    paint,
    resized: (width) => link.resized("heat", width - state.gutter - rightMargin(width)),
    fail,
    signal,
  });
  const outlines = createOutlines(plot);
  /** @type {PaintedHeat | null} */
  let painted = null; // { axis, box, frame, left, marks } of the last paint
  /** @type {PanelSelection["series"]} */
  let before = []; // series before a click: a double-click gives them back

  const topics = ["heat", "ratio", "parting", "selection", "theme", "gutter", "lines", "status", "marked"];
  for (const topic of [...topics, "alerts", "left", "strip"]) state.on(topic, plot.request);
  state.on("cursor", showCursor);
  const turn = () => setHidden(plot.el, showsVectors(state));
  for (const topic of ["selection", "vectors", "status"]) state.on(topic, turn);
  const pointed = createPointed({ state, plot, marked: () => painted && { ...painted.box, marks: painted.marks } });
  const stepWindow = createStepWindow({ state, selection, stepAt: (x) => painted && painted.axis.value(x) });
  const calls = { ...stepWindow, hover, leave, click: draw, reset };
  trackPointer(plot, () => painted && painted.box, calls, signal);

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  function paint(context, width, height) {
    const frame = heatFrame(state);
    painted = null;
    if (showsVectors(state)) return;
    describeHeat(plot.canvas, frame, state);
    const shown = frame?.rows.length && frame.columns ? frame : null;
    showNote(plot, shown ? "" : whyNoHeat(state));
    if (shown) {
      plot.el.style.height = `${2 + shown.rows.length * TALLEST_ROW + state.strip + AXIS_HEIGHT}px`;
      paintFrame(context, shown, width, height);
    }
    if (state.heat) link.painted("heat", state.heat.seq);
    showCursor();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {ShownHeat} frame
   * @param {number} width
   * @param {number} height
   */
  function paintFrame(context, frame, width, height) {
    const colours = theme.read();
    const foot = height - AXIS_HEIGHT; // of all: there the step axis stands
    const bottom = foot - state.strip;
    const names = rowNames(frame.rows, (bottom - 2) / frame.rows.length);
    setGutter(gutterWidth(context, colours, names));
    const box = { left: state.gutter, right: width - rightMargin(width), top: 2, bottom, foot };
    const axis = stepAxis(state, box.left, box.right);
    if (!axis) return;
    const picture = pictureOf(frame, colours.ground);
    const left = leftPicture(frame, state, picture);
    paintHeat(context, {
      axis,
      box,
      colours,
      image: picture.image,
      left,
      back: backPicture(frame, state, picture, axis),
      picture,
      names,
      frame,
      marked: state.marked,
      usual: frame.ratio ? null : usualOf(state.model, frame.quantity),
      parted: partedSteps(state),
      beside: besideWords(state, frame),
      full: state.strip ? bottom + AXIS_HEIGHT - 6 : height, // a strip has words beside it
    });
    const before = plot.canvas.dataset.axis;
    describeAxes(plot.canvas, box, axis);
    if (plot.canvas.dataset.axis !== before) state.emit("axis");
    const mapping = stepMapping(state, state.lines?.series ?? []);
    const marks = placeMarks(stepMarks(state, mapping), ({ step }) => axis.place(step), box);
    paintMarks(context, marks, box.foot, colours);
    painted = { axis, box, frame, left, marks };
  }

  /**
   * The picture as it was last painted, as long as it is of this frame.
   * @param {ShownHeat} frame
   * @param {string} ground
   */
  function pictureOf(frame, ground) {
    if (isCurrent(state.heatPicture, frame, state, ground)) return state.heatPicture;
    const picture = heatPicture(frame, state, ground);
    state.heatPicture = picture;
    state.emit("picture");
    return picture;
  }

  /** @param {number} pixels */
  function setGutter(pixels) {
    if (pixels === state.gutter) return;
    state.gutter = pixels;
    state.emit("gutter");
  }

  /**
   * Row and step under a pixel, or null beside the map.
   * @param {number} x
   * @param {number} y
   * @returns {Cursor & { row: number } | null}
   */
  function cellAt(x, y) {
    if (!painted) return null;
    const { axis, box, frame } = painted;
    const row = Math.floor(((y - box.top) / (box.bottom - box.top)) * frame.rows.length);
    const step = Math.floor(axis.value(x));
    const { frame: shown, row: there } = shownAt(painted, { row, step });
    const inside =
      x >= box.left && x <= box.right && step >= shown.first_step && step <= shown.end_step;
    return inside && there !== undefined && shown.rows[there] ? { row, step, from: "heat", y } : null;
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  function hover(x, y) {
    if (pointed.hoverMark(x, y)) return;
    const cell = cellAt(x, y);
    pointed.point(cell ?? state.pinned);
    const module = painted?.frame.rows[cell?.row ?? -1];
    emphasize(state, module === undefined ? null : { module, quantity: null });
  }

  function leave() {
    pointed.leave();
    emphasize(state, null);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {boolean} second
   */
  function draw(x, y, second) {
    if (pointed.clickMark(x, y)) return;
    const cell = cellAt(x, y);
    if (!second) before = state.selection.series;
    if (cell && painted) selection.add(painted.frame.rows[cell.row], painted.frame.quantity);
  }

  function reset() {
    selection.change({ window: null, series: before });
  }

  function showCursor() {
    const { cursor } = state;
    outlines.place(painted, cursor);
    const isFree = pointed.placeLine(painted && painted.box, (step) => painted?.axis.place(step) ?? NaN);
    if (!isFree || !painted || !cursor) return;
    const { axis, box, frame } = painted;
    if (cursor.from !== "heat" || cursor.row === null || cursor.row >= frame.rows.length) return hideTip(plot);
    const middle = box.top + ((cursor.row + 0.5) * (box.bottom - box.top)) / frame.rows.length;
    const cell = { row: cursor.row, step: cursor.step };
    showTip(plot, axis.place(cursor.step), cursor.y ?? middle, tipOf(painted, cell, state));
  }

  return { el: plot.el, canvas: plot.canvas };
}
