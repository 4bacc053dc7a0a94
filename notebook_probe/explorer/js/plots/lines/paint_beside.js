/** Lines of other runs under those of this one: lighter, dashed by run; a group as a mean in a band. */

import { seriesColour } from "../colour.js";

/** @typedef {(context: CanvasRenderingContext2D, points: PlacedPoints, axis: Axis, values: Axis) => void} PaintLine */

const FAINT = 0.7;
const BAND = 0.16;

/**
 * @param {CanvasRenderingContext2D} context
 * @param {LinesView} view
 * @param {number[]} ground
 * @param {PaintLine} paintLine
 */
export function paintBeside(context, { axis, values, beside }, ground, paintLine) {
  for (const series of beside.filter((one) => one.n)) {
    context.strokeStyle = context.fillStyle = seriesColour(series.colour, ground);
    if (series.band) paintBand(context, series, series.band, axis, values);
    context.globalAlpha = FAINT;
    context.lineWidth = series.band ? 1.8 : 1.5;
    context.setLineDash(series.band ? [] : series.dash);
    paintLine(context, series, axis, values);
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {PlacedPoints} points
 * @param {Band} band
 * @param {Axis} axis
 * @param {Axis} values
 */
function paintBand(context, { u }, band, axis, values) {
  /** @type {(k: number) => number} */
  const x = (k) => u[k] * axis.factor + axis.offset;
  context.globalAlpha = BAND;
  context.beginPath();
  for (let k = 0; k < u.length; k++) context.lineTo(x(k), values.at(band.high[k]));
  for (let k = u.length - 1; k >= 0; k--) context.lineTo(x(k), values.at(band.low[k]));
  context.closePath();
  context.fill();
}
