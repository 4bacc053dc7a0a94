/** Labels beside line ends, and what leads to them. */

import { significant } from "../../format.js";
import { seriesColour } from "../colour.js";
import { fittedText } from "../fitted_text.js";
import { AXIS_HEIGHT } from "../step_axis.js";
import { outermost, spread } from "./label_places.js";

/** @typedef {{ x: number, y: number, series: PaintedSeries, value: number | null }} LineEnd */

const DIMMED = 0.4; // while another line is pointed at
const LABEL_PX = 14;
const EARLY_PX = 14; // a line that ends so far from the edge is led to its label by dots

/**
 * Names at the ends of the lines, and leaders to them; logged scalars with their last value.
 * @param {CanvasRenderingContext2D} context
 * @param {LinesView} view
 * @param {number[]} ground
 */
export function paintLabels(context, view, ground) {
  const { axis, values, box, colours, prepared, beside, width } = view;
  context.font = colours.font;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const drawn = [...prepared, ...beside.filter((one) => one.n)];
  const ends = drawn.flatMap((series) => lastPoint(series, axis, values, box) ?? []);
  for (const series of beside.filter((one) => one.missing)) {
    ends.push({ x: box.right, y: box.bottom, series, value: NaN });
  }
  const room = Math.max(1, Math.floor((box.bottom - box.top + LABEL_PX) / LABEL_PX));
  const shown = outermost(ends, ends.length > room ? room - 1 : room);
  const places = spread(
    shown.map((end) => end.y),
    LABEL_PX,
    box.top,
    box.bottom,
  );
  const space = width - box.right - 18;
  shown.forEach((end, k) => {
    context.fillStyle = context.strokeStyle = seriesColour(end.series.colour, ground, 4.5);
    const isDimmed = view.isDimmed(end.series);
    if (!end.series.missing && !isDimmed) paintLeader(context, end, places[k], box);
    context.globalAlpha = isDimmed ? DIMMED : 1;
    paintLabel(context, view, end, places[k], space);
    context.globalAlpha = 1;
  });
  if (shown.length === ends.length) return;
  context.fillStyle = colours.soft;
  const rest = `+ ${ends.length - shown.length} between`;
  context.fillText(rest, box.right + 14, box.bottom + AXIS_HEIGHT / 2 + 3);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{ x: number, y: number }} end
 * @param {number} place
 * @param {Box} box
 */
function paintLeader(context, { x, y }, place, box) {
  const early = x < box.right - EARLY_PX;
  context.lineWidth = 1;
  context.globalAlpha = early ? 0.8 : 0.5;
  context.setLineDash(early ? [1.5, 3.5] : []);
  context.beginPath();
  context.moveTo(Math.min(x + 4, box.right), y);
  context.lineTo(box.right + 4, y);
  context.lineTo(box.right + 11, place);
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {LinesView} view
 * @param {LineEnd} end
 * @param {number} y
 * @param {number} space
 */
function paintLabel(context, { box, colours, label, isLogged }, end, y, space) {
  const { name: run, missing, left } = end.series;
  const text = label(end.series);
  const value = !missing && !left && (run || isLogged(end.series)) ? ` ${significant(end.value)}` : "";
  const [plain, bold] = [colours.font, run ? colours.font : `600 ${colours.font}`];
  context.font = bold;
  const valueWidth = value ? context.measureText(value).width : 0;
  context.font = plain;
  const name = fittedText(context, text, space - valueWidth);
  const nameWidth = context.measureText(name).width;
  context.fillText(name, box.right + 14, y);
  context.font = bold;
  context.fillText(value, box.right + 14 + nameWidth, y);
  context.font = plain;
}

/**
 * Where the thick line ends.
 * @param {PaintedSeries} series
 * @param {Axis} axis
 * @param {Axis} values
 * @param {Box} box
 * @returns {LineEnd | null}
 */
function lastPoint(series, axis, values, box) {
  const { u, v } = series.average.v.length ? series.average : series;
  for (let k = v.length - 1; k >= 0; k--) {
    const x = u[k] * axis.factor + axis.offset;
    const y = values.at(v[k]);
    if (Number.isFinite(y) && x <= box.right + 1) {
      const value = "last_value" in series ? series.last_value : series.y[k];
      return { x, y: Math.min(Math.max(y, box.top), box.bottom), series, value };
    }
  }
  return null;
}
