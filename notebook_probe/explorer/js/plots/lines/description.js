/** What is said about the lines beside the picture: names, reasons, data attributes. */

import { setAttribute } from "../../dom.js";
import { grouped } from "../../format.js";
import { seriesName, vectorCode } from "../../names.js";
import { probeNote } from "../../probes.js";
import { isVector, unitsOf } from "../../state.js";

/** What tests and screen readers can know of the picture. */
export function describeLines(canvas, prepared) {
  const put = (name, field) => setAttribute(canvas, name, JSON.stringify(prepared.map(field)));
  put("data-series", (one) => seriesName(one.module, one.quantity));
  put("data-points", (one) => one.n);
  put("data-averages", (one) => one.n_average);
  put("data-first-step", (one) => one.first_step);
  put("data-last-step", (one) => one.last_step);
}

/** One quantity names the axis and leaves the labels to the modules. */
export function titleAndLabels(state, prepared) {
  const quantities = new Set(prepared.map((one) => one.quantity));
  if (quantities.size !== 1)
    return { title: "", label: (one) => seriesName(one.module, one.quantity) };
  const [name] = quantities;
  const units = unitsOf(state.model, name);
  return { title: units === "1" ? name : `${name} [${units}]`, label: (one) => one.module };
}

export function hiddenByLogText(prepared) {
  const n = prepared.reduce((sum, { unplaced }) => sum + unplaced, 0);
  return n ? `${grouped(n)} values ≤ 0 have no place on a log axis` : "";
}

/** Which average is drawn, while that is not yet the chosen one of every value. */
export function averageText({ lines, selection }) {
  if (lines.smooth !== selection.smooth)
    return lines.smooth > 0 ? `still the average of weight ${lines.smooth}` : "";
  return lines.averaged < 1 ? `average: ${Math.floor(100 * lines.averaged)} % done` : "";
}

export function whyEmpty(state, prepared) {
  if (!state.selection.series.length)
    return "Click a cell of the heat map, or + above, to draw a series.";
  if (prepared.some((one) => one.n)) {
    return state.selection.log_y
      ? "No positive value here: switch log y off."
      : "No finite value here.";
  }
  const { series } = state.selection;
  const vector = series.find(([, quantity]) => isVector(state, quantity));
  if (vector) return `${vector[1]} is a vector, not drawn here; notebook_probe.figures does: ${vectorCode(...vector)}`;
  const note = series.map(([module, quantity]) => probeNote(state.probes, module, quantity));
  return note.find(Boolean) ?? "Waiting for the first value.";
}
