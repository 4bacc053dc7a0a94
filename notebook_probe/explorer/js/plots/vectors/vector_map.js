/** Vectors in their place: frames in, hover, a click enlarges a module or draws an element as a line. */

import { setAttribute, setHidden } from "../../dom.js";
import { showsVectors, unitsOf } from "../../state.js";
import { gutterWidth } from "../heat/row_names.js";
import { createPlot, describeAxes, hideCursor, hideTip, placeCursor, showNote, showTip } from "../plot.js";
import { trackPointer } from "../pointer.js";
import { AXIS_HEIGHT, rightMargin, stepAxis, stepMapping } from "../step_axis.js";
import { markAt, markTip, paintMarks, placeMarks, pressMark, stepMarks } from "../step_marks.js";
import { paintVectors } from "./paint.js";
import { vectorPicture } from "./picture.js";
import { elementAt, rowPlaces } from "./rows.js";
import { vectorTip } from "./tip.js";

/** @type {Record<string, number>} */
const ARROWS = { ArrowUp: -1, ArrowDown: 1 };

/**
 * @typedef {{
 *   axis: Axis,
 *   box: PlotBox,
 *   frame: DecodedVectors,
 *   places: RowPlace[],
 *   marks: PlacedMark[],
 * }} PaintedVectors
 */

/** @param {Pick<PanelParts, "state" | "theme" | "selection" | "link" | "fail" | "signal">} parts */
export function createVectorMap({ state, theme, selection, link, fail, signal }) {
  const plot = createPlot({
    className: "nbp-vectors",
    label: "Vectors of modules over steps",
    paint,
    resized: (width) => link.resized("vectors", width && width - state.gutter - rightMargin(width)),
    fail,
    signal,
  });
  /** @type {PaintedVectors | null} */
  let painted = null; // { axis, box, frame, places, marks } of the last paint
  /** @type {(VectorPicture & { key: string }) | null} */
  let made = null; // the picture, and what it was made of
  let enlarged = ""; // module
  let first = 0; // row at the top
  /** @type {number | null} */
  let pointed = null; // element under the pointer, of the enlarged row

  const turn = () => setHidden(plot.el, !showsVectors(state));
  for (const topic of ["selection", "vectors", "status"]) state.on(topic, turn);
  const topics = ["vectors", "vector options", "selection", "theme", "gutter", "lines", "marked", "alerts", "strip"];
  for (const topic of topics) state.on(topic, plot.request);
  state.on("cursor", showCursor);
  const calls = { hover, leave: () => point(state.pinned), click, range, reset };
  trackPointer(plot, () => painted?.box ?? { left: 0, right: 0 }, calls, signal);
  plot.canvas.addEventListener("wheel", scrolled, { signal, passive: false });
  plot.canvas.addEventListener("keydown", pressed, { signal });
  turn();

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  function paint(context, width, height) {
    painted = null;
    const frame = state.vectors?.quantity === state.selection.home ? state.vectors : null;
    setAttribute(plot.canvas, "data-quantity", frame?.quantity ?? "");
    setAttribute(plot.canvas, "data-rows", frame?.rows.length ?? 0);
    setAttribute(plot.canvas, "data-enlarged", enlarged);
    showNote(plot, frame ? "" : "Waiting for the first value.");
    if (!showsVectors(state)) return;
    if (frame) paintFrame(context, frame, width, height);
    if (state.vectors) link.painted("vectors", state.vectors.seq);
    followPointer();
    showTips();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {DecodedVectors} frame
   * @param {number} width
   * @param {number} height
   */
  function paintFrame(context, frame, width, height) {
    const colours = theme.read();
    const names = frame.rows.map(({ module }) => ({ name: module }));
    const gutter = gutterWidth(context, colours, names);
    if (gutter !== state.gutter) {
      state.gutter = gutter;
      state.emit("gutter");
    }
    const foot = height - AXIS_HEIGHT;
    const box = { left: gutter, right: width - rightMargin(width), top: 2, bottom: foot - state.strip, foot };
    const axis = stepAxis(state, box.left, box.right);
    if (!axis) return;
    const tall = frame.rows.findIndex((row) => row.module === enlarged);
    first = Math.min(first, Math.max(0, frame.rows.length - 1));
    const places = rowPlaces(frame.rows.length, tall, first, box.top, box.bottom);
    const { counts } = state.vectorOptions;
    paintVectors(context, {
      axis,
      box,
      colours,
      frame,
      places,
      first,
      picture: pictureOf(frame, colours.ground),
      enlarged: tall,
      marked: state.marked,
      step: state.cursor?.step ?? null,
      pointed,
      counts,
      log: isLogVectors(frame),
      units: unitsOf(state.model, frame.quantity),
      full: height,
      width,
    });
    describeAxes(plot.canvas, box, axis);
    const mapping = stepMapping(state, state.lines?.series ?? []);
    const marks = placeMarks(stepMarks(state, mapping), ({ step }) => axis.place(step), box);
    paintMarks(context, marks, box.foot, colours);
    painted = { axis, box, frame, places, marks };
  }

  /** @param {DecodedVectors} frame */
  function isLogVectors(frame) {
    return state.selection.log_heat ?? frame.log;
  }

  /**
   * @param {DecodedVectors} frame
   * @param {string} ground
   */
  function pictureOf(frame, ground) {
    const wish = { log: isLogVectors(frame), ...state.vectorOptions, ground };
    const key = JSON.stringify(wish);
    if (made?.frame !== frame || made.key !== key) {
      made = { ...vectorPicture(frame, wish), key };
      state.heatPicture = made;
      state.emit("picture");
    }
    return made;
  }

  /**
   * `{ row, element, step }` under a pixel, or null beside the pictures.
   * @param {number} x
   * @param {number} y
   */
  function cellAt(x, y) {
    if (!painted) return null;
    const { axis, box, frame, places } = painted;
    const line = elementAt(frame, places, y);
    const step = Math.floor(axis.value(x));
    if (!line || x < box.left || x > box.right) return null;
    if (step < frame.first_step || step > frame.end_step) return null;
    return { ...line, step, y };
  }

  /** Rows move under a pointer that stands still: as they are scrolled, or one is enlarged. */
  function followPointer() {
    const { cursor } = state;
    if (!painted || cursor?.from !== "vectors" || cursor.y === undefined) return;
    const line = elementAt(painted.frame, painted.places, cursor.y);
    if (line?.row === cursor.row && line.element === cursor.element) return;
    point(line ? { ...cursor, ...line } : state.pinned);
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
    if (mark) return point({ step: mark.step, row: null, from: "mark", mark, plot });
    const cell = cellAt(x, y);
    return point(cell ? { ...cell, from: "vectors" } : state.pinned);
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
   */
  function click(x, y) {
    const mark = markUnder(x, y);
    if (mark) return pressMark(state, mark);
    const cell = cellAt(x, y);
    if (!cell || !painted) return undefined;
    const row = painted.frame.rows[cell.row];
    return row.module === enlarged ? drawElement(row, cell.element) : enlarge(row.module);
  }

  /** @param {string} module */
  function enlarge(module) {
    enlarged = module === enlarged ? "" : module;
    plot.request();
  }

  /**
   * @param {VectorRow} row
   * @param {number} place
   */
  function drawElement(row, place) {
    const frame = painted?.frame;
    if (frame?.has_series) selection.add(row.module, `${frame.quantity}[${frame.keys[place] ?? place}]`);
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
    selection.change({ window: null });
  }

  /** @param {WheelEvent} event */
  function scrolled(event) {
    if (!painted) return;
    const last = first + painted.places.length;
    const next = first + Math.sign(event.deltaY);
    if (next < 0 || (event.deltaY > 0 && last >= painted.frame.rows.length)) return;
    first = next;
    event.preventDefault();
    plot.request();
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (!painted) return;
    const { cursor } = state;
    const at = cursor?.row ?? -1;
    const by = ARROWS[event.key];
    if (by) climb(Math.min(Math.max(at + by, 0), painted.frame.rows.length - 1));
    else if (event.key === "Enter" && at >= 0) enter(painted.frame.rows[at], event.shiftKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} row */
  function climb(row) {
    if (!painted) return;
    const { frame, places } = painted;
    if (row < first) first = row;
    else if (row >= first + places.length) first += 1;
    const step = state.cursor?.step ?? frame.end_step;
    point({ row, element: state.cursor?.element ?? 0, step, from: "vectors" });
  }

  /**
   * @param {VectorRow} row
   * @param {boolean} isShifted
   */
  function enter(row, isShifted) {
    if (isShifted) drawElement(row, state.cursor?.element ?? 0);
    else enlarge(row.module);
  }

  function showCursor() {
    if (!showsVectors(state)) return;
    const { cursor } = state;
    const row = state.vectors?.rows[cursor?.row ?? -1];
    pointed = cursor?.from === "vectors" && row?.module === enlarged ? (cursor.element ?? null) : null;
    plot.request(); // the slices follow
  }

  function showTips() {
    const { cursor } = state;
    setAttribute(plot.cursor, "data-from", cursor?.from ?? null);
    if (!painted || !cursor) return hideCursor(plot);
    const { axis, box, frame, places } = painted;
    const x = axis.place(cursor.step);
    placeCursor(plot, x, box.left, box.right, box.top, box.bottom);
    if (cursor.plot === plot && cursor.mark) {
      return showTip(plot, x, (box.top + box.bottom) / 2, markTip(cursor.mark));
    }
    const place = places.find(({ row }) => row === cursor.row);
    if (cursor.from !== "vectors" || !place) return hideTip(plot);
    const row = frame.rows[place.row];
    return showTip(plot, x, cursor.y ?? (place.top + place.bottom) / 2, tipOf(frame, row, cursor));
  }

  /**
   * @param {DecodedVectors} frame
   * @param {VectorRow} row
   * @param {Cursor} cursor
   */
  function tipOf(frame, row, { step, element = 0 }) {
    const units = unitsOf(state.model, frame.quantity);
    const isEnlarged = row.module === enlarged;
    return vectorTip(frame, row, { step, element }, { ...state.vectorOptions, units, isEnlarged });
  }

  return { el: plot.el, canvas: plot.canvas };
}
