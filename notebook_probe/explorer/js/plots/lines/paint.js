/** The line view on a canvas: raw faint under its average, direct labels, marks; no state of its own. */

import { rawAlpha, rgbOf, seriesColour, seriesDash } from "../colour.js";
import { LANE_PX } from "../scale.js";
import { paintStepAxis } from "../step_axis.js";
import { paintMarks } from "../step_marks.js";
import { paintLabels } from "./labels.js";
import { paintBeside } from "./paint_beside.js";

const DIMMED = 0.22; // while another line is pointed at
const MANY = 20; // lines from which on they are thin: to be told apart, and to be painted in a frame
const FEW_POINTS = 40; // points below which each one is drawn

/**
 * @param {CanvasRenderingContext2D} context
 * @param {LinesView} view
 */
export function paintLines(context, view) {
  const { axis, values, box, colours, prepared } = view;
  paintValueAxis(context, values, colours, box);
  if (view.marks) paintStepAxis(context, axis, colours, box.top, box.bottom, false);
  context.save();
  context.beginPath();
  context.rect(box.left - 1, box.top - 3, box.right - box.left + 2, box.bottom - box.top + 3);
  context.clip();
  const ground = rgbOf(colours.ground);
  context.lineCap = "round";
  context.lineJoin = "bevel";
  const width = prepared.length > MANY ? 1 : 1.8;
  paintBeside(context, view, ground, paintLine);
  paintBack(context, view, ground);
  for (const series of prepared) {
    if (series.left) {
      paintLeft(context, series, axis, values, ground);
      continue;
    }
    context.strokeStyle = context.fillStyle = seriesColour(series.colour, ground);
    context.setLineDash([]);
    const averaged = series.average.v.length > 0;
    const strength = view.isDimmed(series) ? DIMMED : 1;
    if (averaged) {
      context.globalAlpha = rawAlpha(series.colour, ground) * strength;
      context.lineWidth = 1;
      paintLine(context, series, axis, values);
    }
    context.globalAlpha = strength;
    if (series.n <= FEW_POINTS) paintDots(context, series.u, series.v, axis, values);
    context.setLineDash(seriesDash(series.colour));
    context.lineWidth = width;
    paintLine(context, averaged ? series.average : series, axis, values);
    if (averaged && series.lane) paintLine(context, series.lane, axis, values);
    context.globalAlpha = 1;
  }
  context.setLineDash([]);
  context.restore();
  paintCrosses(context, view);
  if (view.marks) paintMarks(context, view.marks, box.bottom, colours);
  paintLabels(context, view, ground);
}

/**
 * All steps on both sides of those that came for the window: what is panned to is seen at once.
 * @param {CanvasRenderingContext2D} context
 * @param {LinesView} view
 * @param {number[]} ground
 */
function paintBack(context, { axis, values, box, back, prepared }, ground) {
  const known = prepared.filter((series) => series.n && !series.left);
  const low = Math.min(...known.map((series) => series.first_step));
  const high = Math.max(...known.map((series) => series.last_step));
  if (!back.length || (low <= axis.low && high >= axis.high)) return;
  context.save();
  context.beginPath();
  for (const [from, to] of [[box.left, axis.place(low)], [axis.place(high), box.right]]) {
    if (to > from) context.rect(from, box.top, to - from, box.bottom - box.top);
  }
  context.clip();
  context.lineWidth = back.length > MANY ? 1 : 1.8;
  for (const series of back) {
    context.strokeStyle = seriesColour(series.colour, ground);
    paintLine(context, series.average.v.length ? series.average : series, axis, values);
  }
  context.restore();
}

/**
 * What was trained before, from where the branch leaves it: dashed, lighter, without its noise.
 * @param {CanvasRenderingContext2D} context
 * @param {PreparedSeries} series
 * @param {Axis} axis
 * @param {Axis} values
 * @param {number[]} ground
 */
function paintLeft(context, series, axis, values, ground) {
  context.strokeStyle = seriesColour(series.colour, ground);
  context.globalAlpha = 0.6;
  context.lineWidth = 1.4;
  context.setLineDash([6, 4]);
  paintLine(context, series.average.v.length ? series.average : series, axis, values);
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {PlacedPoints} points
 * @param {Axis} axis
 * @param {Axis} values
 */
function paintLine(context, { u, v }, axis, values) {
  const { factor: kx, offset: ox } = axis;
  const [from, to] = inSight(u, axis);
  let drawing = false;
  context.beginPath();
  for (let k = from; k < to; k++) {
    const x = u[k] * kx + ox;
    const y = values.at(v[k]);
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

/**
 * The points that the axis shows, and one on each side: painting the others takes as long.
 * @param {ArrayLike<number>} u in rising order
 * @param {Axis} axis
 */
function inSight(u, axis) {
  const [low, high] = [axis.forward(axis.low), axis.forward(axis.high)];
  return [Math.max(0, placeOf(u, low) - 1), Math.min(u.length, placeOf(u, high) + 2)];
}

/**
 * How many are below a value.
 * @param {ArrayLike<number>} u
 * @param {number} value
 */
function placeOf(u, value) {
  let [low, high] = [0, u.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (u[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {ArrayLike<number>} u
 * @param {ArrayLike<number>} v
 * @param {Axis} axis
 * @param {Axis} values
 */
function paintDots(context, u, v, axis, values) {
  for (let k = 0; k < v.length; k++) {
    const y = values.at(v[k]);
    if (!Number.isFinite(y)) continue;
    context.beginPath();
    context.arc(u[k] * axis.factor + axis.offset, y, 2.6, 0, 7);
    context.fill();
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Axis} values
 * @param {Colours} colours
 * @param {Box} box
 */
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
  if (values.lane !== null) paintLane(context, values.lane, colours, box);
}

/**
 * Below the lowest decade: what has no logarithm.
 * @param {CanvasRenderingContext2D} context
 * @param {number} middle
 * @param {Colours} colours
 * @param {Box} box
 */
function paintLane(context, middle, colours, box) {
  const top = Math.round(middle - LANE_PX / 2) + 0.5;
  context.globalAlpha = 0.3;
  context.fillStyle = colours.line;
  context.fillRect(box.left, top, box.right - box.left, LANE_PX);
  context.globalAlpha = 1;
  context.setLineDash([2, 2]);
  context.beginPath();
  context.moveTo(box.left, top);
  context.lineTo(box.right, top);
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = colours.soft;
  context.fillText("0", box.left - 7, middle);
}

/**
 * Red crosses where a value was NaN or infinite.
 * @param {CanvasRenderingContext2D} context
 * @param {LinesView} view
 */
function paintCrosses(context, { axis, box, colours, prepared, x0 }) {
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
}
