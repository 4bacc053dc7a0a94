/** What an element of a vector says when it is pointed at. */

import { element } from "../../dom.js";
import { grouped } from "../../format.js";
import { columnSteps, listedStep, stepWords } from "../heat/measured.js";
import { elementName, elementValue } from "./element_words.js";
import { isHistogram, measuredColumn, vectorAt } from "./shown_values.js";

const NO_LINE = "no line of it: its bins widen with the values";

/** `{ step, element }` of a row; `isEnlarged` says what a click does. */
export function vectorTip(frame, row, { step, element: place }, { counts, units, isEnlarged }) {
  const column = measuredColumn(frame, row, step);
  const vector = column === null ? null : vectorAt(frame, row, column, counts);
  const at = column === null ? null : listedStep(frame, frame.steps, frame.rows.indexOf(row), column);
  const shown = column === null ? { first: step, last: step } : columnSteps(frame, column);
  const isOf = step >= shown.first && step <= shown.last;
  const words = stepWords({ first: isOf ? shown.first : step, last: isOf ? shown.last : step }, step, at, grouped);
  const head = element("div", { class: "nbp-tip-head" }, element("b", {}, row.module), `  ${words}`);
  const line = (text, kind = "") => element("div", { class: kind }, text);
  if (!vector) return [head, line("not measured so far")];
  const value = Number.isFinite(vector[place])
    ? elementValue(frame, vector[place], counts, units)
    : "NaN or infinite";
  const word = isHistogram(frame) ? "in " : "";
  const lines = [head, line(`${word}${elementName(frame, row, place)}: ${value}`)];
  const draws = frame.has_series ? "click draws this as a line" : NO_LINE;
  lines.push(line(isEnlarged ? draws : "click enlarges it", "nbp-soft"));
  return lines;
}
