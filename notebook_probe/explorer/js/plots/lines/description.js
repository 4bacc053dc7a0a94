/** Description of the lines next to the picture: names, reasons, data attributes. */

import { setAttribute } from "../../dom.js";
import { seriesName, vectorCode } from "../../names.js";
import { probeNote } from "../../probes.js";
import { isVector, whyNotSaved } from "../../state.js";
import { beyondText } from "./shown_range.js";

/**
 * What tests and screen readers can know of the picture.
 * @param {HTMLCanvasElement} canvas
 * @param {PreparedSeries[]} prepared
 * @param {BesideSeries[]} beside
 * @param {string} why the x axis is not the chosen one
 */
export function describeLines(canvas, prepared, beside, why) {
  /** @type {(name: string, field: (one: PreparedSeries) => unknown) => void} */
  const put = (name, field) => setAttribute(canvas, name, JSON.stringify(prepared.map(field)));
  put("data-series", (one) => seriesName(one.module, one.quantity));
  put("data-left", (one) => Boolean(one.left));
  put("data-points", (one) => one.n);
  put("data-averages", (one) => one.n_average);
  put("data-first-step", (one) => one.first_step);
  put("data-last-step", (one) => one.last_step);
  const others = beside.map(({ name, module, quantity, n }) => [name, seriesName(module, quantity), n]);
  setAttribute(canvas, "data-beside", JSON.stringify(others));
  setAttribute(canvas, "data-why", why || null);
}

/**
 * Where each chart is, what it has, and what its scale leaves out.
 * @param {HTMLCanvasElement} canvas
 * @param {LineChart[]} charts
 */
export function describeCharts(canvas, charts) {
  const told = charts.map(({ box: { top, bottom }, log, values: { low, high }, prepared }) => {
    const series = prepared.map((one) => seriesName(one.module, one.quantity));
    return { top, bottom, log, low, high, series };
  });
  setAttribute(canvas, "data-charts", JSON.stringify(told));
  setAttribute(canvas, "data-beyond", charts.map(({ range }) => beyondText(range)).find(Boolean) || null);
}

/**
 * Which average is drawn, while that is not yet the chosen one of every value.
 * @param {Pick<PanelState, "lines" | "selection">} state
 */
export function averageText({ lines, selection }) {
  if (!lines) return "";
  if (lines.smooth !== selection.smooth)
    return lines.smooth > 0 ? `still the average of weight ${lines.smooth}` : "";
  return lines.averaged < 1 ? `average: ${Math.floor(100 * lines.averaged)} % done` : "";
}

/**
 * Why the x axis is not the chosen one, in short; "" where it is, or will be with the next frame.
 * @param {Pick<PanelState, "lines" | "selection">} state
 */
export function axisText({ lines, selection }) {
  const { x_axis: axis } = selection;
  return lines?.refused[axis] ? `over steps: no ${axis} is recorded` : "";
}

/** @param {Pick<PanelState, "model" | "status">} state */
function howToDraw({ model, status }) {
  if (!model.live || status.logged.length)
    return "Click a row of the heat map, or + above, to draw a series.";
  return "No scalar is logged: run.log(loss=loss) draws it here. Click a row above to draw its series.";
}

/**
 * @param {PanelState} state
 * @param {PreparedSeries[]} prepared
 */
export function whyEmpty(state, prepared) {
  if (!state.selection.series.length) return howToDraw(state);
  if (prepared.some((one) => one.n)) return "No finite value here.";
  if (prepared.some((one) => one.problem)) return "No value, for the reason below.";
  const { series } = state.selection;
  const notSaved = whyNotSaved(state, series.map(([, quantity]) => quantity)[0]);
  if (notSaved) return notSaved;
  const vector = series.find(([, quantity]) => isVector(state, quantity));
  if (vector) return `${vector[1]} is no number, not drawn here; notebook_probe.figures does: ${vectorCode(...vector)}`;
  const note = series.map(([module, quantity]) => probeNote(state.probes, module, quantity));
  return note.find(Boolean) ?? "Waiting for the first value.";
}
