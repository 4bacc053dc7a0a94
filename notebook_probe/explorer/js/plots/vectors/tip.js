/** Tooltip of an element of a vector. */

import { element } from "../../dom.js";
import { grouped } from "../../format.js";
import { columnOf, columnSteps, listedStep, stepWords } from "../heat/measured.js";
import { elementName, elementValue } from "./element_words.js";
import { isHistogram, measuredColumn, vectorAt } from "./shown_values.js";

/** @typedef {{ counts: boolean, units: string, isEnlarged: boolean }} VectorTipWords */

const NO_LINE = "not drawn as a line: its bins widen with the values";

/**
 * `{ step, element }` of a row; `isEnlarged` says what a click does.
 * @param {DecodedVectors} frame
 * @param {VectorRow} row
 * @param {{ step: number, element: number }} at
 * @param {VectorTipWords} words
 */
export function vectorTip(frame, row, { step, element: place }, { counts, units, isEnlarged }) {
  const column = measuredColumn(frame, row, step);
  const vector = column === null ? null : vectorAt(frame, row, column, counts);
  const name = element("b", {}, row.module);
  const head = element("div", { class: "nbp-tip-head" }, name, `  ${words(frame, row, step, column)}`);
  /** @type {(text: string, kind?: string) => HTMLElement} */
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

/**
 * The steps of the column under the pointer, and the one that was measured.
 * @param {DecodedVectors} frame
 * @param {VectorRow} row
 * @param {number} step
 * @param {number | null} column
 */
function words(frame, row, step, column) {
  const measured = column === null ? null : listedStep(frame, frame.steps, frame.rows.indexOf(row), column);
  return stepWords(columnSteps(frame, columnOf(frame, step)), step, measured, grouped);
}
