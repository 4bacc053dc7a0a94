/** The value of a module at a step, and its colour: that of its cell in the heat map, or of those inside. */

import { grouped } from "../../format.js";
import { valueOr } from "../../maps.js";
import { NOT_FINITE_COLOUR, rgbOf } from "../../plots/colour.js";
import { colourIndex } from "../../plots/heat/paint.js";
import { columnOf, columnSteps, measuredStep } from "../../plots/heat/measured.js";
import { NOT_FINITE, NOT_MEASURED } from "../../plots/heat/states.js";
import { above } from "./folding/network.js";

/** @typedef {{ rows: number[], own: number | undefined, cells: number[], column: number, isMean: boolean }} CellsOf */

/** @type {WeakMap<ShownHeat, Map<string, number[]>>} */
const known = new WeakMap(); // frame -> rows inside each module

/**
 * Path -> `{ rgb, text }` as the picture of the heat map has it at a step, or newest; null where it has no
 * row and none inside. `rgb` is null where nothing is measured yet, or nothing has a colour. What was not
 * measured then is as it was last before. `isMean`: of several cells inside their mean, not the largest.
 * @param {ShownPicture | null} picture
 * @param {number | null} step
 * @param {{ isMean: boolean, tell: (value: number) => string }} how
 * @returns {(path: string) => GraphValue | null}
 */
export function colouring(picture, step, { isMean, tell }) {
  if (!picture?.cells || !picture.frame.columns) return () => null; // vectors have no one colour
  const { frame, cells: values } = picture;
  const column = step === null ? frame.columns - 1 : columnOf(frame, step);
  return (path) => {
    const own = frame.index.get(path);
    const rows = own === undefined ? rowsInside(frame).get(path) : [own];
    if (!rows) return null;
    const cells = rows.map((row) => lastMeasured(frame, row, column)).filter((cell) => cell >= 0);
    if (!cells.length) return { rgb: null, text: "not measured yet" };
    const notes = notesOf(frame, { rows, own, cells, column, isMean });
    if (cells.some((cell) => frame.states[cell] === NOT_FINITE)) {
      return { rgb: rgbOf(NOT_FINITE_COLOUR), text: `contains NaN or infinity${notes}` };
    }
    const value = together(cells.map((cell) => values[cell]), isMean, frame.colours);
    return { rgb: colourOf(picture, value), text: tell(value) + notes };
  };
}

/**
 * `[r, g, b]` of a value on the scale of the heat map; null where there is no scale.
 * @param {HeatPicture} picture
 * @param {number} value
 */
function colourOf({ values, map }, value) {
  if (!values) return null;
  const pixel = map.pixels[colourIndex(values.forward(value) * values.factor + values.offset)];
  return [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
}

/**
 * The last cell of a row up to a column that was measured; -1 for none.
 * @param {ShownHeat} frame
 * @param {number} row
 * @param {number} column
 */
function lastMeasured({ states, columns }, row, column) {
  for (let at = column; at >= 0; at--) {
    if (states[row * columns + at] !== NOT_MEASURED) return row * columns + at;
  }
  return -1;
}

/**
 * @param {ShownHeat} frame
 * @returns {Map<string, number[]>}
 */
function rowsInside(frame) {
  return valueOr(known, frame, () => {
    /** @type {Map<string, number[]>} */
    const inside = new Map();
    frame.rows.forEach((path, row) => {
      for (let over = above(path); over; over = above(over)) valueOr(inside, over, () => []).push(row);
    });
    return inside;
  });
}

/**
 * The mean, or the largest: of what has a sign that which is farthest from zero.
 * @param {number[]} values
 * @param {boolean} isMean
 * @param {HeatFrame["colours"]} colours
 */
function together(values, isMean, colours) {
  if (isMean) return values.reduce((sum, value) => sum + value, 0) / values.length;
  /** @type {(value: number) => number} */
  const size = colours === "sign" ? Math.abs : (value) => value;
  return values.reduce((most, value) => (size(value) > size(most) ? value : most));
}

/**
 * @param {ShownHeat} frame
 * @param {CellsOf} of
 */
function notesOf(frame, { rows, own, cells, column, isMean }) {
  const of = isMean ? "the mean of" : "the largest of";
  const inside = own === undefined ? `, ${of} ${grouped(rows.length)} inside` : "";
  const { columns } = frame;
  const steps = cells.flatMap((cell) => measuredStep(frame, Math.floor(cell / columns), cell % columns) ?? []);
  const newest = Math.max(...steps);
  return newest < columnSteps(frame, column).first ? `${inside}, of step ${grouped(newest)}` : inside;
}
