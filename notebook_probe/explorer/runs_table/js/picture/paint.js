/** Paint runs on their axes: those that are wanted in the color of a result, the others pale. */

import { penOf } from "../../../js/dom.js";
import { colourMap } from "../../../js/plots/colour_maps.js";
import { rgbOf } from "../../../js/plots/colour.js";
import { fittedText } from "../../../js/plots/fitted_text.js";

const RADIUS = 3.5;
const TAU = 2 * Math.PI;

/**
 * @param {HTMLCanvasElement} canvas
 * @param {RunPicture} picture
 */
export function paintRuns(canvas, { places, size, rows, ranges, coloured, brought, colours }) {
  const ratio = devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
  const pen = penOf(canvas);
  pen.scale(ratio, ratio);
  pen.font = colours.font;
  const wanted = new Set(rows.order);
  const map = colourMap("value", rgbOf(colours.ground));
  /** @param {number} at */
  const colourOf = (at) => {
    const share = coloured?.[at] ?? NaN;
    return Number.isNaN(share) ? colours.soft : `rgb(${map.at(share).join(" ")})`;
  };
  const draw = places.kind === "parallel" ? line : point;

  if (places.kind === "scatter") gridOf(pen, places, colours);
  for (let at = 0; at < rows.runs.length; at++) if (!wanted.has(at)) draw(pen, places, at, colours.line, 0.5, 1);
  for (const at of [...rows.order].reverse()) draw(pen, places, at, colourOf(at), 0.75, 1.2);
  for (const at of brought) draw(pen, places, at, colours.ink, 1, 2.4);
  rangesOf(pen, places, ranges, colours);
  if (places.kind === "parallel") linesOfAxes(pen, places, colours);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {RunPlaces} places
 * @param {number} at
 * @param {string} colour
 * @param {number} alpha
 * @param {number} wide
 */
function line(pen, { xs, shares, yOf }, at, colour, alpha, wide) {
  [pen.strokeStyle, pen.fillStyle, pen.globalAlpha, pen.lineWidth] = [colour, colour, alpha, wide];
  pen.beginPath();
  let before = false; // without a value there is a gap
  xs.forEach((x, k) => {
    const share = shares[k][at];
    const has = !Number.isNaN(share);
    if (has && before) pen.lineTo(x, yOf(share));
    else if (has) pen.moveTo(x, yOf(share));
    before = has;
  });
  pen.stroke();
  pen.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {RunPlaces} places
 * @param {number} at
 * @param {string} colour
 * @param {number} alpha
 * @param {number} wide
 */
function point(pen, { shares, xOf, yOf }, at, colour, alpha, wide) {
  const [x, y] = [shares[0][at], shares[1][at]];
  if (Number.isNaN(x + y) || !xOf) return;
  [pen.fillStyle, pen.globalAlpha] = [colour, alpha];
  pen.beginPath();
  pen.arc(xOf(x), yOf(y), RADIUS * Math.sqrt(wide), 0, TAU);
  pen.fill();
  pen.globalAlpha = 1;
}

/**
 * Over the lines, with words on a ground of their own.
 * @param {CanvasRenderingContext2D} pen
 * @param {RunPlaces} places
 * @param {Colours} colours
 */
function linesOfAxes(pen, { axes, box, xs, yOf }, colours) {
  const [left, top, , bottom] = box;
  pen.textBaseline = "middle";
  axes.forEach(({ ticks }, k) => {
    stroke(pen, colours.edge, [xs[k], top, xs[k], bottom]);
    const isLast = k === axes.length - 1;
    pen.textAlign = isLast ? "left" : "right";
    for (const { at, label } of ticks) {
      const text = fittedText(pen, label, k ? 76 : left - 8);
      [pen.strokeStyle, pen.lineWidth, pen.fillStyle] = [colours.ground, 3, colours.ink];
      const x = xs[k] + (isLast ? 6 : -6);
      pen.strokeText(text, x, yOf(at));
      pen.fillText(text, x, yOf(at));
    }
    pen.lineWidth = 1;
  });
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {RunPlaces} places
 * @param {Colours} colours
 */
function gridOf(pen, { axes, box, yOf, xOf }, colours) {
  const [left, top, right, bottom] = box;
  const [across, up] = axes;
  [pen.lineWidth, pen.textBaseline] = [1, "middle"];
  for (const { at, label } of up.ticks) {
    stroke(pen, colours.line, [left, yOf(at), right, yOf(at)]);
    [pen.textAlign, pen.fillStyle] = ["right", colours.soft];
    pen.fillText(fittedText(pen, label, left - 8), left - 6, yOf(at));
  }
  for (const { at, label } of across.ticks) {
    const x = xOf?.(at) ?? 0;
    stroke(pen, colours.line, [x, top, x, bottom]);
    [pen.textAlign, pen.fillStyle] = ["center", colours.soft];
    pen.fillText(fittedText(pen, label, 90), x, bottom + 10);
  }
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {string} colour
 * @param {[number, number, number, number]} ends
 */
function stroke(pen, colour, [x0, y0, x1, y1]) {
  pen.strokeStyle = colour;
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {RunPlaces} places
 * @param {ReadonlyMap<string, ColumnRange>} ranges
 * @param {Colours} colours
 */
function rangesOf(pen, { kind, axes, xs, yOf, xOf, box }, ranges, colours) {
  const [left, top, right, bottom] = box;
  const shares = axes.map((axis) => ranges.get(axis.name)).map((range, k) => range && axes[k].sharesOf(range));
  [pen.strokeStyle, pen.fillStyle, pen.lineWidth] = [colours.brand, colours.brand, 1.5];
  /** @type {(x: number, y: number, wide: number, tall: number) => void} */
  const frame = (x, y, wide, tall) => {
    pen.globalAlpha = 0.16;
    pen.fillRect(x, y, wide, tall);
    pen.globalAlpha = 1;
    pen.strokeRect(x, y, wide, tall);
  };
  if (kind === "parallel") {
    shares.forEach((pair, k) => pair && frame(xs[k] - 7, yOf(pair[1]), 14, yOf(pair[0]) - yOf(pair[1])));
    return;
  }
  const [across, up] = shares;
  if (!across && !up) return;
  const [x0, x1] = across && xOf ? across.map(xOf) : [left, right];
  const [y1, y0] = up ? up.map(yOf) : [bottom, top];
  frame(x0, y0, x1 - x0, y1 - y0);
}
