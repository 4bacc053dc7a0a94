/** The line view on a canvas: raw faint under its average, direct labels, marks; no state of its own. */

import { rgbOf, seriesColour, seriesDash } from "../colour.js";
import { fittedText } from "../fitted_text.js";
import { AXIS_HEIGHT, paintStepAxis } from "../step_axis.js";
import { spread } from "./labels.js";

const FEW_POINTS = 40; // points below which each one is drawn
const LABEL_PX = 14;

export function paintLines(context, view) {
  const { axis, values, box, colours, prepared, smooth } = view;
  paintValueAxis(context, values, colours, box);
  paintStepAxis(context, axis, colours, box.top, box.bottom, false);
  context.save();
  context.beginPath();
  context.rect(box.left - 1, box.top - 3, box.right - box.left + 2, box.bottom - box.top + 3);
  context.clip();
  const ground = rgbOf(colours.ground);
  context.lineCap = "round";
  for (const series of prepared) {
    context.strokeStyle = context.fillStyle = seriesColour(series.colour, ground);
    context.setLineDash([]);
    if (smooth > 0) {
      context.globalAlpha = 0.3;
      context.lineWidth = 1;
      paintLine(context, series, axis, values);
      context.globalAlpha = 1;
    }
    if (series.n <= FEW_POINTS) paintDots(context, series.u, series.v, axis, values);
    context.setLineDash(seriesDash(series.colour));
    context.lineWidth = 1.8;
    paintLine(context, smooth > 0 ? series.average : series, axis, values);
  }
  context.setLineDash([]);
  context.restore();
  paintMarks(context, view);
  paintLabels(context, view, ground);
}

function paintLine(context, { u, v }, axis, values) {
  const { factor: kx, offset: ox } = axis;
  const { factor: ky, offset: oy } = values;
  let drawing = false;
  context.beginPath();
  for (let k = 0; k < v.length; k++) {
    const x = u[k] * kx + ox;
    const y = v[k] * ky + oy;
    if (!Number.isFinite(y)) {
      drawing = false; // a canvas would bridge the gap
      continue;
    }
    if (!drawing) context.moveTo(x, y);
    context.lineTo(x, y); // also onto itself: a value between two gaps shows as a dot
    drawing = true;
  }
  context.stroke();
}

function paintDots(context, u, v, axis, values) {
  for (let k = 0; k < v.length; k++) {
    const y = v[k] * values.factor + values.offset;
    if (!Number.isFinite(y)) continue;
    context.beginPath();
    context.arc(u[k] * axis.factor + axis.offset, y, 2.6, 0, 7);
    context.fill();
  }
}

function paintValueAxis(context, values, colours, box) {
  context.font = colours.font;
  context.lineWidth = 1;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.strokeStyle = colours.line;
  context.fillStyle = colours.soft;
  for (const { value, label } of values.ticks) {
    const y = Math.round(values.place(value)) + 0.5;
    context.beginPath();
    context.moveTo(box.left, y);
    context.lineTo(box.right, y);
    context.stroke();
    context.fillText(label, box.left - 7, y);
  }
}

/** Red crosses where a value was NaN or infinite, ticks where something was done or found. */
function paintMarks(context, { axis, box, colours, prepared, events, x0, alerts }) {
  context.lineWidth = 1.4;
  context.strokeStyle = colours.bad;
  context.beginPath();
  const taken = new Set();
  for (const x of prepared.flatMap((series) => series.marks)) {
    const place = Math.round(axis.place(x + x0));
    if (taken.has(place) || place < box.left || place > box.right) continue;
    taken.add(place);
    context.moveTo(place - 3, box.bottom - 9);
    context.lineTo(place + 3, box.bottom - 3);
    context.moveTo(place - 3, box.bottom - 3);
    context.lineTo(place + 3, box.bottom - 9);
  }
  context.stroke();
  const done = events.map(([x]) => x + x0);
  paintTicks(context, done, axis, box, colours.brand);
  paintTicks(context, alerts, axis, box, colours.bad);
}

function paintTicks(context, xs, axis, box, colour) {
  context.strokeStyle = colour;
  context.beginPath();
  for (const x of xs) {
    const place = Math.round(axis.place(x)) + 0.5;
    if (!(place >= box.left && place <= box.right + 1)) continue;
    context.moveTo(place, box.bottom - 8);
    context.lineTo(place, box.bottom + 3);
  }
  context.stroke();
}

function paintLabels(context, { axis, values, box, colours, prepared, label, width }, ground) {
  context.font = colours.font;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const ends = prepared.map((series) => lastPoint(series, axis, values, box)).filter(Boolean);
  const room = Math.max(1, Math.floor((box.bottom - box.top + LABEL_PX) / LABEL_PX));
  const shown = ends.length > room ? ends.slice(0, room - 1) : ends;
  const placed = spread(
    shown.map((end) => end.y),
    LABEL_PX,
    box.top,
    box.bottom,
  );
  const space = width - box.right - 18;
  shown.forEach(({ x, y, series }, k) => {
    context.fillStyle = context.strokeStyle = seriesColour(series.colour, ground, 4.5);
    context.lineWidth = 1;
    context.globalAlpha = 0.5;
    context.beginPath();
    context.moveTo(Math.min(x + 3, box.right), y);
    context.lineTo(box.right + 4, y);
    context.lineTo(box.right + 11, placed[k]);
    context.stroke();
    context.globalAlpha = 1;
    context.fillText(fittedText(context, label(series), space), box.right + 14, placed[k]);
  });
  if (shown.length === ends.length) return;
  context.fillStyle = colours.soft;
  context.fillText(
    `+ ${ends.length - shown.length} more`,
    box.right + 14,
    box.bottom + AXIS_HEIGHT / 2,
  );
}

/** Where the thick line ends. */
function lastPoint(series, axis, values, box) {
  const { u, v } = series.average.v.length ? series.average : series;
  for (let k = v.length - 1; k >= 0; k--) {
    const x = u[k] * axis.factor + axis.offset;
    const y = v[k] * values.factor + values.offset;
    if (Number.isFinite(y) && x <= box.right + 1) {
      return { x, y: Math.min(Math.max(y, box.top), box.bottom), series };
    }
  }
  return null;
}
