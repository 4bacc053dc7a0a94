/** The heat map on a canvas: one ImageData scaled into place, names, axes, colour bar. */

import { penOf } from "../../dom.js";
import { NOT_FINITE_COLOUR, opaquePixel, rgbOf } from "../colour.js";
import { paintStepAxis } from "../step_axis.js";
import { paintColourBar } from "./colour_bar.js";
import { paintFlags } from "./flags.js";
import { hatching } from "./hatching.js";
import { reduced } from "./reduced.js";
import { paintRowNames } from "./row_names.js";
import { NOT_FINITE, NOT_MEASURED } from "./states.js";

const LEFT = 0.38; // of the strength of what is trained now

/**
 * A frame as a small canvas, one pixel per cell; what was not measured stays transparent.
 * @param {ShownHeat} frame
 * @param {Axis} values
 * @param {Float32Array} cells
 * @param {Uint32Array} colours
 */
export function heatImage(frame, values, cells, colours) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.max(1, frame.columns), Math.max(1, frame.rows.length)];
  const context = penOf(canvas);
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const { forward, factor, offset } = values;
  const notFinite = opaquePixel(rgbOf(NOT_FINITE_COLOUR));
  for (let k = 0; k < frame.states.length; k++) {
    if (frame.states[k] === NOT_MEASURED) continue;
    if (frame.states[k] === NOT_FINITE) pixels[k] = notFinite;
    else pixels[k] = colours[colourIndex(forward(cells[k]) * factor + offset)];
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Of 256 colours; zero and below have no place on a log scale: the lowest, not a hole.
 * @param {number} place
 */
export function colourIndex(place) {
  return place > 0 ? Math.min(255, Math.round(place)) : 0;
}

/**
 * What the run that was left has to the right of this one, paler; where it ends.
 * @param {CanvasRenderingContext2D} context
 * @param {HeatView} view
 * @param {LeftPicture} left
 * @param {number} from
 * @param {number} rowHeight
 */
function paintLeft(context, { axis, box, frame }, left, from, rowHeight) {
  const { first_step: first, last_step: last, end_step: stop } = left.frame;
  const [begin, whole, end] = [axis.place(first), axis.place(last + 1), axis.place(stop + 1)];
  context.save();
  context.beginPath();
  context.rect(from, box.top, Math.max(0, end - from), box.bottom - box.top);
  context.clip();
  context.globalAlpha = LEFT;
  frame.rows.forEach((module, row) => {
    const place = left.frame.index.get(module);
    if (place === undefined) return;
    const top = box.top + row * rowHeight;
    context.drawImage(left.image, 0, place, left.image.width, 1, begin, top, whole - begin, rowHeight);
  });
  context.restore();
  return end;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {HeatView} view
 */
export function paintHeat(context, view) {
  const { axis, box, colours, image, frame, names } = view;
  const [left, whole] = [axis.place(frame.first_step), axis.place(frame.last_step + 1)];
  const right = axis.place(frame.end_step + 1); // the last column may be wider than the run is long
  const rowHeight = (box.bottom - box.top) / frame.rows.length;
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  context.clip();
  context.imageSmoothingEnabled = rowHeight < 1; // then a row is less than a pixel: blend, don't drop
  if (view.back) paintBack(context, view, view.back, left, right);
  context.fillStyle = hatching(context, colours.soft);
  context.fillRect(left, box.top, right - left, box.bottom - box.top);
  drawUntil(context, right, box, () => {
    const height = box.bottom - box.top;
    context.drawImage(reduced(image, height), left, box.top, whole - left, height);
  });
  const end = view.left ? paintLeft(context, view, view.left, right, rowHeight) : right;
  context.fillStyle = colours.ground;
  for (const row of rowHeight >= 7 ? frame.rows.keys() : names.map(({ from }) => from)) {
    if (row) context.fillRect(left, box.top + row * rowHeight - 0.75, end - left, 1.5);
  }
  paintFlags(context, view);
  context.restore();
  paintStepAxis(context, axis, colours, box.top, box.foot, false);
  paintRowNames(context, view, rowHeight);
  if (view.beside) paintAlignment(context, view.beside.axis, view);
  paintColourBar(context, view);
}

/**
 * All steps, coarser, with room for what is known better.
 * @param {CanvasRenderingContext2D} context
 * @param {HeatView} view
 * @param {LeftPicture} back
 * @param {number} left
 * @param {number} right
 */
function paintBack(context, { axis, box }, { frame, image }, left, right) {
  const [begin, end] = [axis.place(frame.first_step), axis.place(frame.last_step + 1)];
  const height = box.bottom - box.top;
  drawUntil(context, axis.place(frame.end_step + 1), box, () => {
    context.drawImage(reduced(image, height), begin, box.top, end - begin, height);
  });
  context.clearRect(left, box.top, right - left, height);
}

/**
 * Draw what is left of a place.
 * @param {CanvasRenderingContext2D} context
 * @param {number} right
 * @param {PlotBox} box
 * @param {() => void} draw
 */
function drawUntil(context, right, box, draw) {
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, Math.max(0, right - box.left), box.bottom - box.top);
  context.clip();
  draw();
  context.restore();
}

/**
 * Left of the step axis: what is the same in both runs.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {HeatView} view
 */
function paintAlignment(context, text, { box, colours }) {
  context.textAlign = "right";
  context.textBaseline = "top";
  context.fillStyle = colours.soft;
  context.fillText(text, box.left - 12, box.foot + 10);
}
