/** The line plot in its place: frames in, hover, zoom, data attributes out. */

import { hasSeries } from "../../state.js";
import {
  createPlot,
  describeAxes,
  hideTip,
  placeCursor,
  placePin,
  showNote,
  showTip,
} from "../plot.js";
import { trackPointer } from "../pointer.js";
import { valueScale } from "../scale.js";
import { AXIS_HEIGHT, lineAxis, rightMargin, stepMapping } from "../step_axis.js";
import { averageText, describeLines, hiddenByLogText, titleAndLabels, whyEmpty } from "./description.js";
import { paintLines } from "./paint.js";
import { prepareLines, valueRange } from "./prepare.js";
import { lineTooltip } from "./tooltip.js";

export function createLinePlot({ state, theme, selection, link, fail, signal }) {
  const plot = createPlot({
    className: "nbp-lines",
    label: "Series over steps",
    paint,
    resized: (width) => link.resized("lines", width - state.gutter - rightMargin(width)),
    fail,
    signal,
  });
  let prepared = null;
  let painted = null; // { axis, values, box, mapping, prepared } of the last paint

  const refresh = () => {
    prepared = null;
    plot.request();
  };
  for (const topic of ["lines", "selection"]) state.on(topic, refresh);
  for (const topic of ["theme", "gutter", "heat", "status", "alerts"]) state.on(topic, plot.request);
  state.on("cursor", showCursor);
  trackPointer(
    plot,
    () => painted?.box ?? { left: 0, right: 0 },
    { hover, leave, click() {}, range, reset },
    signal,
  );

  function paint(context, width, height) {
    const { log_y: log } = state.selection;
    const colours = theme.read();
    const box = {
      left: state.gutter,
      right: width - rightMargin(width),
      top: 18,
      bottom: height - AXIS_HEIGHT,
    };
    prepared ??= state.lines ? prepareLines(chosen(state), state.selection) : [];
    const axis = lineAxis(state, prepared, box.left, box.right);
    const range =
      axis && valueRange(prepared, axis.forward(axis.low), axis.forward(axis.high), log);
    painted = null;
    describeLines(plot.canvas, prepared);
    showNote(plot, range ? "" : whyEmpty(state, prepared));
    if (range) {
      const values = valueScale(
        range.low,
        range.high,
        log,
        box.bottom,
        box.top,
        Math.floor((box.bottom - box.top) / 44),
      );
      const { events, smooth, x0 } = state.lines;
      const { label, title } = titleAndLabels(state, prepared);
      const mapping = stepMapping(state, prepared);
      paintLines(context, {
        axis,
        values,
        box,
        colours,
        prepared,
        smooth,
        events,
        x0,
        alerts: state.alerts.map(({ step }) => mapping.x(step)),
        label,
        width,
      });
      context.fillStyle = colours.soft;
      context.textAlign = "left";
      context.textBaseline = "top";
      const notes = [title, hiddenByLogText(prepared), averageText(state)];
      context.fillText(notes.filter(Boolean).join("   "), box.left, 0);
      describeAxes(plot.canvas, box, axis);
      painted = { axis, values, box, prepared, mapping };
    }
    if (state.lines) link.painted("lines", state.lines.seq);
    showCursor();
  }

  function hover(x, y) {
    if (!painted || x < painted.box.left - 4 || x > painted.box.right + 4) return leave();
    const step = painted.mapping.step(painted.axis.value(x));
    state.cursor = { step, row: null, from: "lines", y };
    state.emit("cursor");
  }

  function leave() {
    state.cursor = null;
    state.emit("cursor");
  }

  function range(x0, x1) {
    if (!painted) return;
    const [low, high] = [x0, x1].map((x) => painted.mapping.step(painted.axis.value(x)));
    selection.change({ window: [Math.floor(low), Math.max(Math.ceil(high), Math.floor(low) + 1)] });
  }

  function reset() {
    selection.change({ window: null });
  }

  function showCursor() {
    const { cursor } = state;
    if (!painted || !cursor) {
      placeCursor(plot, NaN);
      return hideTip(plot);
    }
    const { axis, box, mapping } = painted;
    const x = axis.place(mapping.x(cursor.step));
    placeCursor(plot, x, box.left, box.right, box.top, box.bottom);
    if (cursor.from === "lines") listValues(x, cursor.y ?? (box.top + box.bottom) / 2);
    else hideTip(plot);
  }

  function listValues(x, y) {
    const tip = lineTooltip(state, theme, painted, x, y);
    if (!tip) return hideTip(plot);
    const { closest, rows } = tip;
    if (closest.y >= painted.box.top && closest.y <= painted.box.bottom)
      placePin(plot, closest.x, closest.y);
    return showTip(plot, x, y, rows);
  }

  return { el: plot.el, canvas: plot.canvas };
}

/** The frame without series that were removed here a moment ago. */
function chosen(state) {
  const series = state.lines.series.filter((one) =>
    hasSeries(state.selection, one.module, one.quantity),
  );
  return { ...state.lines, series };
}
