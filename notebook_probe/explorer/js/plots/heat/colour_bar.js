/** Right of the heat map: what its colours mean, and what lies beyond them. */

import { significant } from "../../format.js";
import { NOT_FINITE_COLOUR } from "../colour.js";
import { AXIS_HEIGHT } from "../step_axis.js";
import { apartText } from "../../parts/compare/ratio_frame.js";
import { fittedText } from "../fitted_text.js";
import { hatching } from "./hatching.js";
import { NOT_FINITE, NOT_MEASURED } from "./states.js";

const WIDTH = 10;
const BEYOND_PX = 14; // of the mark and its number, at either end
const TITLE_PX = 18;

/**
 * @param {CanvasRenderingContext2D} context
 * @param {HeatView} view
 */
export function paintColourBar(context, { box, colours, picture, frame, full, usual, beside }) {
  const { map, values } = picture;
  const beyond = beyondEnds(frame, values);
  /** @type {(value: number) => string} */
  const told = (value) => (frame.ratio ? apartText(value, frame.signed) : significant(value));
  const x = box.right + 14;
  const titled = beside ? TITLE_PX : 0;
  const top = box.top + titled + (beyond.high === null ? 0 : BEYOND_PX);
  const bottom = full - AXIS_HEIGHT - 30 - (beyond.low === null ? 0 : BEYOND_PX);
  /** @type {(share: number) => string} */
  const colour = (share) => `rgb(${map.at(share).join(" ")})`;
  const gradient = context.createLinearGradient(0, bottom, 0, top);
  for (let k = 0; k <= 32; k++) gradient.addColorStop(k / 32, colour(k / 32));
  context.fillStyle = gradient;
  context.fillRect(x, top, WIDTH, bottom - top);
  if (map.hasGround) outline(context, colours, x, top, bottom);
  context.textAlign = "left";
  context.textBaseline = "middle";
  paintTicks(context, values, colours, x, top, bottom, usual);
  paintBeyond(context, colours, beyond.high, colour(1), x, top - 2, -1, told);
  paintBeyond(context, colours, beyond.low, colour(0), x, bottom + 2, 1, told);
  paintLegend(context, colours, frame, x, full);
  if (beside) paintTitle(context, beside.title, x, box.top, colours);
}

/**
 * The extremes, where they lie beyond the colours; else null.
 * @param {ShownHeat} frame
 * @param {Axis | null} values
 */
function beyondEnds({ lowest, highest }, values) {
  if (!values) return { low: null, high: null };
  return {
    high: highest !== null && isBelow(values.high, highest) ? highest : null,
    low: lowest !== null && isBelow(lowest, values.low) ? lowest : null,
  };
}

/**
 * By more than what rounding does to the ends of a logarithmic scale.
 * @param {number} one
 * @param {number} other
 */
function isBelow(one, other) {
  return other - one > 1e-6 * Math.max(Math.abs(one), Math.abs(other));
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Colours} colours
 * @param {number} x
 * @param {number} top
 * @param {number} bottom
 */
function outline(context, colours, x, top, bottom) {
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.strokeRect(x + 0.5, top + 0.5, WIDTH - 1, bottom - top - 1);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Axis | null} values
 * @param {Colours} colours
 * @param {number} x
 * @param {number} top
 * @param {number} bottom
 * @param {number | null} usual
 */
function paintTicks(context, values, colours, x, top, bottom, usual) {
  if (!values) return;
  context.fillStyle = colours.soft;
  /** @type {(value: number) => number} */
  const height = (value) => bottom - ((bottom - top) * values.place(value)) / 255;
  const isOn = usual !== null && values.low <= usual && usual <= values.high;
  const mark = isOn ? height(usual) : null;
  let clear = Infinity;
  for (const { value, label } of values.ticks) {
    const y = height(value);
    if (y > clear - 12 || (mark !== null && Math.abs(y - mark) < 12)) continue;
    clear = y;
    context.fillText(label, x + 16, Math.min(Math.max(y, top + 5), bottom - 5));
  }
  if (isOn && mark !== null) paintUsual(context, x, mark, usual, colours);
}

/**
 * Where on the colour bar all is well.
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} usual
 * @param {Colours} colours
 */
function paintUsual(context, x, y, usual, colours) {
  context.fillStyle = colours.ink;
  context.fillRect(x - 4, Math.round(y) - 0.75, 18, 1.5);
  context.fillText(`${significant(usual)} usual`, x + 16, y);
}

/**
 * An arrow out of the bar, and how far values go.
 * @param {CanvasRenderingContext2D} context
 * @param {Colours} colours
 * @param {number | null} value
 * @param {string} fill
 * @param {number} x
 * @param {number} y
 * @param {number} direction
 * @param {(value: number) => string} told
 */
function paintBeyond(context, colours, value, fill, x, y, direction, told) {
  if (value === null) return;
  context.fillStyle = fill;
  context.strokeStyle = colours.soft;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x + 0.5, y);
  context.lineTo(x + WIDTH - 0.5, y);
  context.lineTo(x + WIDTH / 2, y + direction * 8);
  context.closePath();
  context.fill();
  context.stroke();
  context.fillStyle = colours.soft;
  context.fillText(`to ${told(value)}`, x + 16, y + direction * 6);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Colours} colours
 * @param {ShownHeat} frame
 * @param {number} x
 * @param {number} full
 */
function paintLegend(context, colours, frame, x, full) {
  /** @type {Array<[number, string | CanvasPattern, string]>} */
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

/**
 * Above the colours: what they compare.
 * @param {CanvasRenderingContext2D} context
 * @param {string} title
 * @param {number} x
 * @param {number} top
 * @param {Colours} colours
 */
function paintTitle(context, title, x, top, colours) {
  context.fillStyle = colours.soft;
  context.textBaseline = "top";
  context.fillText(fittedText(context, title, context.canvas.clientWidth - x - 2), x, top);
}
