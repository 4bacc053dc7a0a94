/** Vectors on a canvas: a picture per module, the vector at the cursor beside it, the colour bar. */

import { significant, THIN_SPACE } from "../../format.js";
import { rgbOf, seriesColour } from "../colour.js";
import { fittedText } from "../fitted_text.js";
import { hatching } from "../heat/hatching.js";
import { AXIS_HEIGHT, paintStepAxis } from "../step_axis.js";
import { elementTick, isLane, kindOfNumber } from "./element_words.js";
import { isHistogram, lineOf, measuredColumn, vectorAt } from "./shown_values.js";

const SLICE_PX = 60;
const TICK_PX = 12;
const LABELLED_PX = 2 * TICK_PX - 3; // rows of histograms from which on two values of the axis can be read
const CLEAR_PX = 8; // of the last step's label, which stands below the end of the axis

/**
 * @param {CanvasRenderingContext2D} context
 * @param {VectorView} view
 */
export function paintVectors(context, view) {
  const { axis, box, colours, frame, places, enlarged } = view;
  const [left, right] = [axis.place(frame.first_step), axis.place(frame.end_step + 1)];
  paintStepAxis(context, axis, colours, box.top, box.foot, false);
  context.font = colours.font;
  for (const place of places) {
    const row = frame.rows[place.row];
    paintPicture(context, view, place, row, left, right);
    const pointed = place.row === enlarged ? view.pointed : null;
    if (pointed !== null) paintPointed(context, view, pointed, place, row, left, right);
    paintName(context, view, place, row, place.row === enlarged);
    paintSlice(context, view, place, row, place.row === enlarged);
  }
  paintBar(context, view);
  paintRest(context, view);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {VectorView} view
 * @param {RowPlace} place
 * @param {VectorRow} row
 * @param {number} left
 * @param {number} right
 */
function paintPicture(context, { axis, box, colours, picture, frame }, { row: k, top, bottom }, row, left, right) {
  const whole = axis.place(frame.last_step + 1) - left; // the run may end within the last column
  context.save();
  context.beginPath();
  context.rect(box.left, top, Math.max(0, Math.min(right, box.right) - box.left), bottom - top);
  context.clip();
  context.fillStyle = hatching(context, colours.soft);
  context.fillRect(left, top, right - left, bottom - top);
  context.imageSmoothingEnabled = bottom - top < row.n; // less than a pixel an element: blend
  const { image, tops } = picture;
  context.drawImage(image, 0, tops[k], image.width, row.n, left, top, whole, bottom - top);
  context.restore();
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  const wide = Math.min(right, box.right) - Math.max(left, box.left);
  context.strokeRect(Math.max(left, box.left) + 0.5, top + 0.5, wide - 1, bottom - top - 1);
}

/**
 * A dashed frame round the element under the pointer, over all steps.
 * @param {CanvasRenderingContext2D} context
 * @param {VectorView} view
 * @param {number} pointed
 * @param {RowPlace} place
 * @param {VectorRow} row
 * @param {number} left
 * @param {number} right
 */
function paintPointed(context, { box, colours, frame }, pointed, { top, bottom }, row, left, right) {
  const high = (bottom - top) / row.n;
  const [from, to] = [Math.max(left, box.left), Math.min(right, box.right)];
  const y = Math.round(top + lineOf(frame, row, pointed) * high);
  context.save();
  context.setLineDash([3, 2]);
  context.strokeStyle = colours.ink;
  context.strokeRect(from + 0.5, y + 0.5, to - from - 1, Math.max(2, Math.round(high) - 1));
  context.restore();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {VectorView} view
 * @param {RowPlace} place
 * @param {VectorRow} row
 * @param {boolean} isEnlarged
 */
function paintName(context, { box, colours, marked }, { top, bottom }, row, isEnlarged) {
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = isEnlarged || marked.has(row.module) ? colours.brand : colours.ink;
  context.font = isEnlarged ? `600 ${colours.font}` : colours.font;
  const y = isEnlarged ? top + 7 : (top + bottom) / 2;
  context.fillText(fittedText(context, row.module, box.left - 10), box.left - 7, y);
  context.font = colours.font;
}

/**
 * Bars beside their elements, of the cursor's step or of the last.
 * @param {CanvasRenderingContext2D} context
 * @param {VectorView} view
 * @param {RowPlace} place
 * @param {VectorRow} row
 * @param {boolean} isEnlarged
 */
function paintSlice(context, view, { top, bottom }, row, isEnlarged) {
  const { box, colours, frame, step, counts, pointed } = view;
  const column = step === null ? null : measuredColumn(frame, row, step);
  const vector = step !== null && column === null ? null : vectorAt(frame, row, column, counts);
  if (!vector) return;
  const scale = barScale(vector, frame, view.log);
  const x = box.right + 12;
  const high = (bottom - top) / row.n;
  const blue = seriesColour(0, rgbOf(colours.ground));
  const zero = x + scale(0) * SLICE_PX;
  const hasAxis = isEnlarged || (isHistogram(frame) && bottom - top >= LABELLED_PX);
  let labelled = -Infinity;
  const order = Array.from(vector, (_, element) => element);
  order.sort((a, b) => lineOf(frame, row, a) - lineOf(frame, row, b));
  const finite = order.filter((element) => !isLane(frame, element));
  const axis = bottom - top < 3 * TICK_PX ? [finite[0], finite[finite.length - 1]] : finite;
  for (const element of order) {
    const value = vector[element];
    const y = top + lineOf(frame, row, element) * high;
    const isPointed = isEnlarged && pointed === element;
    context.fillStyle = isPointed ? colours.ink : blue;
    const end = x + (Number.isFinite(value) ? scale(value) : 1) * SLICE_PX;
    const gap = high > 4 ? 1 : 0;
    context.fillRect(Math.min(zero, end), y + gap / 2, Math.max(0.5, Math.abs(end - zero)), high - gap);
    if (!hasAxis || (!isEnlarged && !axis.includes(element))) continue;
    const middle = y + high / 2;
    const at = Math.min(Math.max(middle, top + 5), bottom - 4); // the first and the last stay inside
    if (!isPointed && at < labelled + TICK_PX) continue;
    if (isEnlarged && !isPointed && pointed !== null && nearPointed(element, pointed, high)) continue;
    if (!isPointed) labelled = at;
    context.fillStyle = isPointed ? colours.ink : colours.soft;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.font = isPointed ? `600 ${colours.font}` : colours.font;
    const label = elementTick(frame, row, element);
    context.fillText(label, x + SLICE_PX + 7, at);
    context.font = colours.font;
  }
}

/**
 * @param {number} element
 * @param {number} pointed
 * @param {number} high
 */
function nearPointed(element, pointed, high) {
  return Math.abs(element - pointed) * high < TICK_PX;
}

/**
 * Value -> 0…1 along a bar.
 * @param {Float32Array} vector
 * @param {DecodedVectors} frame
 * @param {boolean} log
 * @returns {(value: number) => number}
 */
function barScale(vector, frame, log) {
  const finite = [...vector].filter(Number.isFinite);
  if (log && !isHistogram(frame)) {
    const positive = finite.filter((one) => one > 0).map(Math.log10);
    const [low, high] = [Math.min(...positive) - 0.3, Math.max(...positive)];
    return (value) => (value > 0 ? (Math.log10(value) - low) / (high - low || 1) : 0);
  }
  const [low, high] = [Math.min(0, ...finite), Math.max(0, ...finite)];
  return (value) => (value - low) / (high - low || 1);
}

/**
 * Below the slices: from what to what the colours go.
 * @param {CanvasRenderingContext2D} context
 * @param {VectorView} view
 */
function paintBar(context, { box, colours, picture, frame, full, width, counts, units }) {
  const { map, values } = picture;
  const [x, y] = [box.right + 12, full - AXIS_HEIGHT + 2];
  const gradient = context.createLinearGradient(x, 0, x + SLICE_PX, 0);
  for (let k = 0; k <= 16; k++) gradient.addColorStop(k / 16, `rgb(${map.at(k / 16).join(" ")})`);
  context.fillStyle = gradient;
  context.fillRect(x, y, SLICE_PX, 7);
  context.strokeStyle = colours.line;
  context.strokeRect(x + 0.5, y + 0.5, SLICE_PX - 1, 6);
  context.fillStyle = colours.soft;
  context.textBaseline = "top";
  context.textAlign = "left";
  const isShare = isHistogram(frame) && !counts;
  const what = isShare ? "of elements" : isHistogram(frame) ? "elements" : "";
  const unit = [kindOfNumber(frame), units === "1" ? "" : units].filter(Boolean).join(", ");
  const words = values ? what || unit : "per-module scales";
  const beside = x + SLICE_PX + 7;
  context.fillText(words, beside, y - 2, width - beside);
  if (!values) return;
  /** @type {(value: number) => string} */
  const text = (value) => (isShare ? `${significant(100 * value, 2)}${THIN_SPACE}%` : significant(value, 2));
  context.fillText(text(values.low), x + CLEAR_PX, y + 9);
  context.textAlign = "right";
  context.fillText(text(values.high), x + CLEAR_PX + SLICE_PX, y + 9);
}

/**
 * How many rows are out of sight.
 * @param {CanvasRenderingContext2D} context
 * @param {VectorView} view
 */
function paintRest(context, { box, colours, frame, places, first }) {
  const below = frame.rows.length - first - places.length;
  if (!first && !below) return;
  context.fillStyle = colours.soft;
  context.textAlign = "right";
  context.textBaseline = "top";
  const words = [first && `↑ ${first}`, below && `↓ ${below}`].filter(Boolean).join("  ");
  context.fillText(words, box.left - 7, box.foot + 7);
}
