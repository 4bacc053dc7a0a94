/** The line plot in its place: frames in, hover, zoom, data attributes out. */

import { lineAxis, rightMargin, stepClock, AXIS_HEIGHT } from "./axes.js";
import { rgbOf, seriesColour } from "./colour.js";
import { element, setAttribute } from "./dom.js";
import { duration, exact, grouped } from "./format.js";
import { paintLines, prepareLines, valueRange } from "./lines.js";
import { createPlot, hideTip, placeCursor, placePin, showNote, showTip } from "./plot.js";
import { trackPointer } from "./pointer.js";
import { valueScale } from "./scale.js";
import { hasSeries, seriesName } from "./state.js";

const LISTED = 9; // series in a tip

export function createLineView({ state, theme, selection, link, fail, signal }) {
  const plot = createPlot({
    className: "nbp-lines",
    label: "Series over steps",
    paint,
    resized: (width) => link.resized("line_px", width - state.gutter - rightMargin(width)),
    fail,
    signal,
  });
  let prepared = null;
  let painted = null; // { axis, values, box, clock, prepared } of the last paint

  const refresh = () => {
    prepared = null;
    plot.request();
  };
  for (const topic of ["lines", "selection"]) state.on(topic, refresh);
  for (const topic of ["theme", "gutter", "heat", "status"]) state.on(topic, plot.request);
  state.on("cursor", showCursor);
  trackPointer(plot, () => painted?.box ?? { left: 0, right: 0 }, { hover, leave, click() {}, range, reset }, signal);

  function paint(context, width, height) {
    const { log_y: log, smooth } = state.selection;
    const colours = theme.read();
    const box = { left: state.gutter, right: width - rightMargin(width), top: 18, bottom: height - AXIS_HEIGHT };
    prepared ??= state.lines ? prepareLines(chosen(state), state.selection) : [];
    const axis = lineAxis(state, prepared, box.left, box.right);
    const range = axis && valueRange(prepared, axis.forward(axis.low), axis.forward(axis.high), log);
    painted = null;
    describeLines(plot.canvas, prepared);
    showNote(plot, range ? "" : whyEmpty(state, prepared));
    if (range) {
      const values = valueScale(range.low, range.high, log, box.bottom, box.top, Math.floor((box.bottom - box.top) / 44));
      const { events, x0 } = state.lines;
      const { label, title } = naming(state, prepared);
      paintLines(context, { axis, values, box, colours, prepared, smooth, events, x0, label, width });
      context.fillStyle = colours.soft;
      context.textAlign = "left";
      context.textBaseline = "top";
      context.fillText([title, hiddenByLog(prepared)].filter(Boolean).join("   "), box.left, 0);
      painted = { axis, values, box, prepared, clock: stepClock(state, prepared) };
    }
    if (state.lines) link.painted("lines", state.lines.seq);
    showCursor();
  }

  function hover(x, y) {
    if (!painted || x < painted.box.left - 4 || x > painted.box.right + 4) return leave();
    const step = painted.clock.step(painted.axis.value(x));
    state.cursor = { step, row: null, from: "lines", y };
    state.tell("cursor");
  }

  function leave() {
    state.cursor = null;
    state.tell("cursor");
  }

  function range(x0, x1) {
    if (!painted) return;
    const [low, high] = [x0, x1].map((x) => painted.clock.step(painted.axis.value(x)));
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
    const { axis, box, clock } = painted;
    const x = axis.place(clock.x(cursor.step));
    placeCursor(plot, x, box.left, box.right, box.top, box.bottom);
    if (cursor.from === "lines") listValues(x, cursor.y ?? (box.top + box.bottom) / 2);
    else hideTip(plot);
  }

  function listValues(x, y) {
    const { axis, values, box, clock } = painted;
    const points = painted.prepared.map((series) => nearest(series, axis, values, x)).filter(Boolean);
    if (!points.length) return hideTip(plot);
    const closest = points.reduce((a, b) => (Math.abs(b.y - y) < Math.abs(a.y - y) ? b : a));
    if (closest.y >= box.top && closest.y <= box.bottom) placePin(plot, closest.x, closest.y);
    points.sort((a, b) => a.y - b.y);
    const ground = rgbOf(theme.read().ground);
    const at = (point) => pointStep(point, state, clock);
    const head = element("div", { class: "nbp-tip-head" }, `step ${grouped(at(closest))}${timeOf(closest)}`);
    const rows = points.slice(0, LISTED).map((point) => {
      const { series } = point;
      const swatch = element("i", { style: `background: ${seriesColour(series.colour, ground)}` });
      const elsewhere = at(point) === at(closest) ? "" : ` at ${grouped(at(point))}`;
      const text = seriesName(series.module, series.quantity);
      const row = element("div", { class: point === closest ? "nbp-tip-row nbp-on" : "nbp-tip-row" });
      row.append(swatch, element("span", {}, text), element("b", {}, exact(series.y[point.k]) + elsewhere));
      return row;
    });
    if (points.length > LISTED) rows.push(element("div", {}, `+ ${points.length - LISTED} more`));
    rows.push(...nearEvents(state.lines, axis, x));
    showTip(plot, x, y, [head, ...rows]);
  }

  const timeOf = (point) =>
    state.selection.x_axis === "time" ? ` · ${duration(state.lines.x0 + point.series.x[point.k])}` : "";

  return { el: plot.el, canvas: plot.canvas };
}

/** The frame without series that were removed here a moment ago. */
function chosen(state) {
  const series = state.lines.series.filter((one) => hasSeries(state.selection, one.module, one.quantity));
  return { ...state.lines, series };
}

/** What tests and screen readers can know of the picture. */
function describeLines(canvas, prepared) {
  const list = (field) => JSON.stringify(prepared.map(field));
  setAttribute(canvas, "data-series", list((one) => seriesName(one.module, one.quantity)));
  setAttribute(canvas, "data-points", list((one) => one.n));
  setAttribute(canvas, "data-first-step", list((one) => one.first_step));
  setAttribute(canvas, "data-last-step", list((one) => one.last_step));
}

/** One quantity names the axis and leaves the labels to the modules. */
function naming(state, prepared) {
  const quantities = new Set(prepared.map((one) => one.quantity));
  if (quantities.size !== 1) return { title: "", label: (one) => seriesName(one.module, one.quantity) };
  const [name] = quantities;
  const units = state.model.quantities.find((one) => one.name === name)?.units ?? "1";
  return { title: units === "1" ? name : `${name} [${units}]`, label: (one) => one.module };
}

function hiddenByLog(prepared) {
  const n = prepared.reduce((sum, { unplaced }) => sum + unplaced, 0);
  return n ? `${grouped(n)} values ≤ 0 have no place on a log axis` : "";
}

function whyEmpty(state, prepared) {
  if (!state.selection.series.length) return "Click a cell of the heat map, or + above, to draw a series.";
  if (prepared.some((one) => one.n)) {
    return state.selection.log_y ? "No positive value here: switch log y off." : "No finite value here.";
  }
  const waiting = state.selection.series.map(([module]) => state.status.notes[module]).find(Boolean);
  return waiting ?? "Waiting for the first value.";
}

function pointStep({ series, k }, state, clock) {
  return Math.round(clock.step(series.x[k] + state.lines.x0));
}

function nearEvents({ events, x0 }, axis, x) {
  return events
    .filter(([at]) => Math.abs(axis.place(at + x0) - x) < 4)
    .map(([, kind, text]) => element("div", { class: "nbp-soft" }, text || kind));
}

/** The recorded finite point of a series nearest to a pixel column. */
function nearest(series, axis, values, x) {
  let best = null;
  for (let k = 0; k < series.n; k++) {
    const place = { series, k, x: series.u[k] * axis.factor + axis.offset, y: 0 };
    if (best && Math.abs(place.x - x) >= Math.abs(best.x - x)) continue;
    place.y = series.v[k] * values.factor + values.offset;
    if (Number.isFinite(place.y)) best = place;
  }
  return best;
}
