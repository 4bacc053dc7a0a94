/** Text on a canvas, cut to its room. */

import { shortName } from "../names.js";

/**
 * A name no wider than `room` pixels.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} room
 */
export function fittedText(context, text, room) {
  return shortName(text, (short) => context.measureText(short).width <= room);
}
