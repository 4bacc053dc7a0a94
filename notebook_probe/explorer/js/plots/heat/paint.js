/** The heat map on a canvas: one ImageData scaled into place, names, axes, colour bar. */

import { NOT_FINITE_COLOUR, VIRIDIS_PIXELS, opaquePixel, rgbOf, viridis } from "../colour.js";
import { fittedText } from "../fitted_text.js";
import { AXIS_HEIGHT, paintStepAxis } from "../step_axis.js";
import { hatching } from "./hatching.js";

export const NOT_MEASURED = 1;
export const NOT_FINITE = 2;

/** A frame as a small canvas, one pixel per cell; what was not measured stays transparent. */
export function heatImage(frame, values, cells) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.max(1, frame.columns), Math.max(1, frame.rows.length)];
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const { forward, factor, offset } = values;
  const notFinite = opaquePixel(rgbOf(NOT_FINITE_COLOUR));
  for (let k = 0; k < frame.states.length; k++) {
    if (frame.states[k] === NOT_MEASURED) continue;
    if (frame.states[k] === NOT_FINITE) pixels[k] = notFinite;
    else pixels[k] = VIRIDIS_PIXELS[viridisIndex(forward(cells[k]) * factor + offset)];
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// Zero and below have no place on a log scale: the lowest colour, not a hole.
function viridisIndex(place) {
  return place > 0 ? Math.min(255, Math.round(place)) : 0;
}

/** Largest finite cell, at least `high`: the maximum of a block may lie above every mean. */
export function largestCell(frame, cells, high) {
  let largest = high;
  for (let k = 0; k < cells.length; k++) {
    if (frame.states[k] === 0 && cells[k] > largest && cells[k] < Infinity) largest = cells[k];
  }
  return largest;
}

export function paintHeat(context, view) {
  const { axis, box, colours, image, frame } = view;
  const [left, right] = [axis.place(frame.first_step), axis.place(frame.last_step + 1)];
  const rowHeight = (box.bottom - box.top) / frame.rows.length;
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  context.clip();
  context.fillStyle = hatching(context, colours.soft);
  context.fillRect(left, box.top, right - left, box.bottom - box.top);
  context.imageSmoothingEnabled = rowHeight < 1; // then a row is less than a pixel: blend, don't drop
  context.drawImage(image, left, box.top, right - left, box.bottom - box.top);
  if (rowHeight >= 7) {
    context.fillStyle = colours.ground;
    for (let row = 1; row < frame.rows.length; row++) {
      context.fillRect(left, box.top + row * rowHeight - 0.75, right - left, 1.5);
    }
  }
  context.restore();
  paintStepAxis(context, axis, colours, box.top, box.bottom, false);
  paintRowNames(context, view, rowHeight);
  paintColourBar(context, view);
}

/** Names as wide as they need, within reason; every k-th when rows are thinner than text. */
export function gutterWidth(context, colours, rows) {
  context.font = colours.font;
  const widest = rows.reduce((most, name) => (name.length > most.length ? name : most), "");
  return Math.round(Math.min(150, Math.max(52, context.measureText(widest).width + 14)));
}

function paintRowNames(context, { box, colours, frame, marked }, rowHeight) {
  const stride = Math.ceil(11 / rowHeight);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (let row = stride >> 1; row < frame.rows.length; row += stride) {
    context.fillStyle = marked.has(frame.rows[row]) ? colours.brand : colours.ink;
    const y = box.top + (row + 0.5) * rowHeight;
    context.fillText(fittedText(context, frame.rows[row], box.left - 10), box.left - 7, y);
  }
}

function paintColourBar(context, { box, colours, values, frame, full }) {
  const [x, top, bottom] = [box.right + 14, box.top, full - AXIS_HEIGHT - 30];
  const gradient = context.createLinearGradient(0, bottom, 0, top);
  for (let k = 0; k <= 32; k++) gradient.addColorStop(k / 32, `rgb(${viridis(k / 32).join(" ")})`);
  context.fillStyle = gradient;
  context.fillRect(x, top, 10, bottom - top);
  context.fillStyle = colours.soft;
  context.textAlign = "left";
  context.textBaseline = "middle";
  let clear = Infinity;
  for (const { value, label } of values?.ticks ?? []) {
    const y = bottom - ((bottom - top) * values.place(value)) / 255;
    if (y > clear - 12) continue;
    clear = y;
    context.fillText(label, x + 16, Math.min(Math.max(y, top + 5), bottom - 5));
  }
  const legend = [
    [NOT_MEASURED, hatching(context, colours.soft), "not measured"],
    [NOT_FINITE, NOT_FINITE_COLOUR, "NaN or infinite"],
  ];
  legend
    .filter(([state]) => frame.states.includes(state))
    .forEach(([, fill, text], k) => {
      const y = full - AXIS_HEIGHT - 18 + k * 17;
      context.fillStyle = fill;
      context.fillRect(x, y - 5, 10, 10);
      context.fillStyle = colours.soft;
      context.fillText(text, x + 16, y);
    });
}
