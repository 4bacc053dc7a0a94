/** The heat map in its place: frames in, hover, a click draws a series, a drag zooms. */

import { setAttribute } from "../../dom.js";
import { unitsOf } from "../../state.js";
import { createPlot, describeAxes, hideTip, placeCursor, showNote, showTip } from "../plot.js";
import { trackPointer } from "../pointer.js";
import { valueScale } from "../scale.js";
import { AXIS_HEIGHT, rightMargin, stepAxis } from "../step_axis.js";
import { gutterWidth, heatImage, largestCell, paintHeat } from "./paint.js";
import { cellTooltip } from "./tooltip.js";

const TALLEST_ROW = 64;

export function createHeatMap({ state, theme, selection, link, fail, signal }) {
  const plot = createPlot({
    className: "nbp-heat",
    label: "Modules over steps",
    paint,
    resized: (width) => link.resized("heat", width - state.gutter - rightMargin(width)),
    fail,
    signal,
  });
  let painted = null; // { axis, box, frame } of the last paint
  let before = []; // series before a click: a double-click gives them back

  const topics = ["heat", "selection", "theme", "gutter", "lines", "status", "marked"];
  for (const topic of topics) state.on(topic, plot.request);
  state.on("cursor", showCursor);
  const calls = { hover, leave: () => point(null), click: draw, range, reset };
  trackPointer(plot, () => painted?.box ?? { left: 0, right: 0 }, calls, signal);

  function paint(context, width, height) {
    const frame = state.heat;
    painted = null;
    describeHeat(plot.canvas, frame);
    const empty = !frame?.rows.length || !frame.columns;
    showNote(plot, empty ? whyNoHeat(state) : "");
    if (!empty) {
      plot.el.style.height = `${2 + frame.rows.length * TALLEST_ROW + AXIS_HEIGHT}px`;
      paintFrame(context, frame, width, height);
    }
    if (frame) link.painted("heat", frame.seq);
    showCursor();
  }

  function paintFrame(context, frame, width, height) {
    const colours = theme.read();
    setGutter(gutterWidth(context, colours, frame.rows));
    const bottom = Math.min(height - AXIS_HEIGHT, frame.rows.length * TALLEST_ROW);
    const box = { left: state.gutter, right: width - rightMargin(width), top: 2, bottom };
    const axis = stepAxis(state, box.left, box.right);
    if (!isCurrent(state.heatPicture, frame, state)) {
      state.heatPicture = heatPicture(frame, state);
      state.emit("picture");
    }
    const { image, values } = state.heatPicture;
    paintHeat(context, {
      axis,
      box,
      colours,
      image,
      values,
      frame,
      marked: state.marked,
      full: height,
    });
    describeAxes(plot.canvas, box, axis);
    painted = { axis, box, frame };
  }

  function setGutter(pixels) {
    if (pixels === state.gutter) return;
    state.gutter = pixels;
    state.emit("gutter");
  }

  /** Row and step under a pixel, or null beside the map. */
  function cellAt(x, y) {
    if (!painted) return null;
    const { axis, box, frame } = painted;
    const row = Math.floor(((y - box.top) / (box.bottom - box.top)) * frame.rows.length);
    const step = Math.floor(axis.value(x));
    const inside =
      x >= box.left && x <= box.right && step >= frame.first_step && step <= frame.last_step;
    return inside && row >= 0 && row < frame.rows.length ? { row, step, from: "heat", y } : null;
  }

  function point(cursor) {
    state.cursor = cursor;
    state.emit("cursor");
  }

  function hover(x, y) {
    point(cellAt(x, y));
  }

  function draw(x, y, second) {
    const cell = cellAt(x, y);
    if (!second) before = state.selection.series;
    if (cell) selection.add(painted.frame.rows[cell.row], painted.frame.quantity);
  }

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
    if (!painted || !cursor) {
      placeCursor(plot, NaN);
      return hideTip(plot);
    }
    const { axis, box, frame } = painted;
    const x = axis.place(cursor.step);
    placeCursor(plot, x, box.left, box.right, box.top, box.bottom);
    if (cursor.from !== "heat" || cursor.row >= frame.rows.length) return hideTip(plot);
    const y =
      cursor.y ?? box.top + ((cursor.row + 0.5) * (box.bottom - box.top)) / frame.rows.length;
    showTip(
      plot,
      x,
      y,
      cellTooltip(frame, cursor.row, cursor.step, unitsOf(state.model, frame.quantity)),
    );
  }

  return { el: plot.el, canvas: plot.canvas };
}

/** Image and colour scale (0…255) of a frame; null values when nothing finite is there. */
function heatPicture(frame, state) {
  const log = state.selection.log_heat;
  const cells = state.selection.cells === "mean" ? frame.mean : frame.maximum;
  const known = frame.low !== null && (!log || frame.low > 0);
  const high = known ? largestCell(frame, cells, frame.high) : 1;
  const values = valueScale(known ? frame.low : high / 10, high, log, 0, 255, 6);
  return {
    image: heatImage(frame, values, cells),
    values: known ? values : null,
    frame,
    log,
    cells,
  };
}

function isCurrent(picture, frame, { selection }) {
  if (picture?.frame !== frame || picture.log !== selection.log_heat) return false;
  return picture.cells === (selection.cells === "mean" ? frame.mean : frame.maximum);
}

function describeHeat(canvas, frame) {
  setAttribute(canvas, "data-quantity", frame?.quantity ?? "");
  setAttribute(canvas, "data-rows", frame?.rows.length ?? 0);
  setAttribute(canvas, "data-columns", frame?.columns ?? 0);
  setAttribute(canvas, "data-last-step", frame?.last_step ?? -1);
}

function whyNoHeat(state) {
  if (state.selection.home) return "Waiting for the first value.";
  return Object.keys(state.status.recorded).length ? "Choose a quantity above." : "";
}
