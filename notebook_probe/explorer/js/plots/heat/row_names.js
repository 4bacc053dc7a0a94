/** Left of the heat map: the name of each row, or brackets where rows are thinner than text. */

import { fittedText } from "../fitted_text.js";
import { brackets } from "./brackets.js";

const TEXT_PX = 11;

/** @type {WeakMap<string[], { rowHeight: number, names: RowGroup[] }>} */
const known = new WeakMap();

/**
 * What stands beside the rows: `{ from, to, name }`, several rows to a bracket.
 * @param {string[]} rows
 * @param {number} rowHeight
 * @returns {RowGroup[]}
 */
export function rowNames(rows, rowHeight) {
  const last = known.get(rows);
  if (last?.rowHeight === rowHeight) return last.names;
  const isThin = rowHeight < TEXT_PX;
  const names = isThin ? brackets(rows, rowHeight) : rows.map((name, row) => ({ from: row, to: row + 1, name }));
  known.set(rows, { rowHeight, names });
  return names;
}

/** @type {WeakMap<object, { font: string, width: number }>} */
const measured = new WeakMap(); // names -> what they need: thousands are measured once, not in each frame

/**
 * Names as wide as they need, within reason.
 * @param {CanvasRenderingContext2D} context
 * @param {Colours} colours
 * @param {Array<{ name: string }>} names
 */
export function gutterWidth(context, colours, names) {
  const before = measured.get(names);
  if (before?.font === colours.font) return before.width;
  context.font = colours.font;
  const widths = names.map(({ name }) => context.measureText(name).width);
  const width = Math.round(Math.min(150, Math.max(52, Math.max(...widths) + 16)));
  measured.set(names, { font: colours.font, width });
  return width;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {HeatView} view
 * @param {number} rowHeight
 */
export function paintRowNames(context, { box, colours, names, frame, marked }, rowHeight) {
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  for (const { from, to, name } of names) {
    const on = frame.rows.slice(from, to).some((row) => marked.has(row));
    context.fillStyle = on ? colours.brand : colours.ink;
    const [top, bottom] = [box.top + from * rowHeight, box.top + to * rowHeight];
    if (rowHeight < TEXT_PX) paintBracket(context, box.left - 4, top, bottom, on ? colours.brand : colours.soft);
    context.fillText(fittedText(context, name, box.left - 13), box.left - 8, (top + bottom) / 2);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} top
 * @param {number} bottom
 * @param {string} colour
 */
function paintBracket(context, x, top, bottom, colour) {
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(x + 3, Math.round(top) + 1.5);
  context.lineTo(x + 0.5, Math.round(top) + 1.5);
  context.lineTo(x + 0.5, Math.round(bottom) - 1.5);
  context.lineTo(x + 3, Math.round(bottom) - 1.5);
  context.stroke();
}
