/** The heat map in its place: frames in, hover, a click draws a series, a drag zooms. */

import { setAttribute, setHidden } from "../../dom.js";
import { grouped } from "../../format.js";
import { heatFrame, showsVectors, unitsOf, usualOf, whyNotSaved } from "../../state.js";
import { createPlot, describeAxes, hideCursor, hideTip, placeCursor, showNote, showTip } from "../plot.js";
import { trackPointer } from "../pointer.js";
import { AXIS_HEIGHT, rightMargin, stepAxis, stepMapping } from "../step_axis.js";
import { markAt, markTip, paintMarks, placeMarks, pressMark, stepMarks } from "../step_marks.js";
import { ratioName } from "../../parts/compare/names.js";
import { partedSteps } from "../../parts/compare/partings.js";
import { createOutlines } from "./outlines.js";
import { paintHeat } from "./paint.js";
import { heatPicture, isCurrent, leftPicture } from "./picture.js";
import { gutterWidth, rowNames } from "./row_names.js";
import { cellTooltip } from "./tooltip.js";

/** @typedef {{ row: number, step: number }} HeatCell */
/**
 * @typedef {{
 *   axis: Axis,
 *   box: PlotBox,
 *   frame: ShownHeat,
 *   left: LeftPicture | null,
 *   marks: PlacedMark[],
 * }} PaintedHeat
 */

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
  const calls = { hover, leave: () => point(state.pinned), click: draw, range, reset };
  trackPointer(plot, () => painted?.box ?? { left: 0, right: 0 }, calls, signal);

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

  /** @param {Cursor | null} cursor */
  function point(cursor) {
    state.cursor = cursor;
    state.emit("cursor");
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  function hover(x, y) {
    const mark = markUnder(x, y);
    if (mark) point({ step: mark.step, row: null, from: "mark", mark, plot });
    else point(cellAt(x, y) ?? state.pinned);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  function markUnder(x, y) {
    return painted && markAt(painted.marks, x, y, painted.box.foot);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {boolean} second
   */
  function draw(x, y, second) {
    const mark = markUnder(x, y);
    if (mark) return pressMark(state, mark);
    const cell = cellAt(x, y);
    if (!second) before = state.selection.series;
    if (cell && painted) selection.add(painted.frame.rows[cell.row], painted.frame.quantity);
  }

  /**
   * @param {number} x0
   * @param {number} x1
   */
  function range(x0, x1) {
    if (!painted) return;
    const [low, high] = [painted.axis.value(x0), painted.axis.value(x1)];
    selection.change({ window: [Math.floor(low), Math.max(Math.ceil(high), Math.floor(low) + 1)] });
  }

  function reset() {
    selection.change({ window: null, series: before });
  }

  function showCursor() {
    const { cursor } = state;
    outlines.place(painted, cursor);
    setAttribute(plot.cursor, "data-from", cursor?.from ?? null);
    if (!painted || !cursor) return hideCursor(plot);
    const { axis, box, frame } = painted;
    const x = axis.place(cursor.step);
    placeCursor(plot, x, box.left, box.right, box.top, box.bottom);
    if (cursor.plot === plot && cursor.mark) {
      return showTip(plot, x, (box.top + box.bottom) / 2, markTip(cursor.mark));
    }
    if (cursor.from !== "heat" || cursor.row === null || cursor.row >= frame.rows.length) return hideTip(plot);
    const y =
      cursor.y ?? box.top + ((cursor.row + 0.5) * (box.bottom - box.top)) / frame.rows.length;
    showTip(plot, x, y, tipOf(painted, { row: cursor.row, step: cursor.step }, state));
  }

  return { el: plot.el, canvas: plot.canvas };
}

/**
 * What stands beside the colours of a ratio: of what, and aligned by what.
 * @param {PanelState} state
 * @param {ShownHeat} frame
 */
function besideWords(state, frame) {
  if (!frame.ratio) return null;
  return { title: `this run ÷ ${ratioName(state)}`, axis: `by ${state.selection.aligned}` };
}

/**
 * Of which frame a cell is: right of what is trained now of that of the line that was left.
 * @param {PaintedHeat} painted
 * @param {HeatCell} cell
 */
function shownAt({ frame, left }, { row, step }) {
  if (!left || step <= frame.end_step) return { frame, row, isLeft: false };
  return { frame: left.frame, row: left.frame.index.get(frame.rows[row]), isLeft: true };
}

/**
 * @param {PaintedHeat} painted
 * @param {HeatCell} cursor
 * @param {PanelState} state
 */
function tipOf(painted, cursor, state) {
  const { frame, row = -1, isLeft } = shownAt(painted, cursor);
  const words = tipWords(state, painted.frame);
  const before = isLeft ? `on the line that was left at step ${grouped(state.left?.fork ?? 0)}` : "";
  return cellTooltip(frame, row, cursor.step, { ...words, before });
}

/**
 * @param {PanelState} state
 * @param {ShownHeat} frame
 */
function tipWords(state, frame) {
  const steps = partedSteps(state);
  const { folds } = state.selection;
  const units = unitsOf(state.model, frame.quantity);
  return { units, steps, folds, other: frame.ratio ? ratioName(state) : "" };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {ShownHeat | null} frame
 * @param {Pick<PanelState, "left">} state
 */
function describeHeat(canvas, frame, { left }) {
  setAttribute(canvas, "data-quantity", frame?.quantity ?? "");
  setAttribute(canvas, "data-rows", frame?.rows.length ?? 0);
  setAttribute(canvas, "data-columns", frame?.columns ?? 0);
  setAttribute(canvas, "data-left-to", left?.heat?.end_step ?? -1);
  setAttribute(canvas, "data-last-step", frame?.end_step ?? -1);
  setAttribute(canvas, "data-ratio-to", frame && "to" in frame ? frame.to : null);
}

/** @param {PanelState} state */
function whyNoHeat(state) {
  const notSaved = state.selection.home && whyNotSaved(state, state.selection.home);
  if (notSaved) return notSaved;
  if (state.selection.home) return "Waiting for the first value.";
  return Object.keys(state.status.recorded).length ? "Choose a quantity above." : "";
}
