/** Vectors in their place: frames in, hover, a click enlarges a module or draws an element as a line. */

import { setAttribute, setHidden } from "../../dom.js";
import { showsVectors, unitsOf } from "../../state.js";
import { gutterWidth } from "../heat/row_names.js";
import { createPlot, describeAxes, hideTip, showNote, showTip } from "../plot.js";
import { createPointed } from "../pointed.js";
import { trackPointer } from "../pointer.js";
import { AXIS_HEIGHT, rightMargin, stepAxis, stepMapping } from "../step_axis.js";
import { paintMarks, placeMarks, stepMarks } from "../step_marks.js";
import { createStepWindow } from "../step_window.js";
import { paintVectors } from "./paint.js";
import { vectorPicture } from "./picture.js";
import { createRowScroll } from "./row_scroll.js";
import { elementAt, rowPlaces } from "./rows.js";
import { vectorTip } from "./tip.js";

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
  /** @type {number | null} */
  let element = null; // under the pointer, of the enlarged row

  const turn = () => setHidden(plot.el, !showsVectors(state));
  for (const topic of ["selection", "vectors", "status"]) state.on(topic, turn);
  const topics = ["vectors", "vector options", "selection", "theme", "gutter", "lines", "marked", "alerts", "strip"];
  for (const topic of topics) state.on(topic, plot.request);
  state.on("cursor", showCursor);
  const pointed = createPointed({ state, plot, marked: () => painted && { ...painted.box, marks: painted.marks } });
  const stepWindow = createStepWindow({ state, selection, stepAt: (x) => painted && painted.axis.value(x) });
  trackPointer(plot, () => painted && painted.box, { ...pointed, ...stepWindow, hover, click }, signal);
  const scroll = createRowScroll({ state, plot, painted: () => painted, point: pointed.point, enter, signal });
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
    const first = scroll.first(frame.rows.length);
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
      pointed: element,
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
    pointed.point(line ? { ...cursor, ...line } : state.pinned);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  function hover(x, y) {
    if (pointed.hoverMark(x, y)) return;
    const cell = cellAt(x, y);
    pointed.point(cell ? { ...cell, from: "vectors" } : state.pinned);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  function click(x, y) {
    if (pointed.clickMark(x, y)) return undefined;
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
    element = cursor?.from === "vectors" && row?.module === enlarged ? (cursor.element ?? null) : null;
    plot.request(); // the slices follow
  }

  function showTips() {
    const { cursor } = state;
    const isFree = pointed.placeLine(painted && painted.box, (step) => painted?.axis.place(step) ?? NaN);
    if (!isFree || !painted || !cursor) return;
    const { axis, frame, places } = painted;
    const place = places.find(({ row }) => row === cursor.row);
    if (cursor.from !== "vectors" || !place) return hideTip(plot);
    const row = frame.rows[place.row];
    showTip(plot, axis.place(cursor.step), cursor.y ?? (place.top + place.bottom) / 2, tipOf(frame, row, cursor));
  }

  /**
   * @param {DecodedVectors} frame
   * @param {VectorRow} row
   * @param {Cursor} cursor
   */
  function tipOf(frame, row, { step, element: place = 0 }) {
    const units = unitsOf(state.model, frame.quantity);
    const isEnlarged = row.module === enlarged;
    return vectorTip(frame, row, { step, element: place }, { ...state.vectorOptions, units, isEnlarged });
  }

  return { el: plot.el, canvas: plot.canvas };
}
