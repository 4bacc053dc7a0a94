/** One row of the ratio as a strip, with a line where it parts. */

import { penOf } from "../../dom.js";
import { rgbOf } from "../../plots/colour.js";
import { colourMap } from "../../plots/colour_maps.js";
import { NOT_MEASURED } from "../../plots/heat/states.js";

const HEIGHT = 12;

/**
 * @param {HTMLCanvasElement} canvas
 * @param {DecodedRatio | null} frame
 * @param {string} module
 * @param {number} step
 * @param {Colours} colours
 */
export function paintStrip(canvas, frame, module, step, colours) {
  const row = frame?.index.get(module);
  [canvas.width, canvas.height] = [frame?.columns ?? 1, HEIGHT];
  if (!frame || row === undefined) return;
  const context = penOf(canvas);
  const map = colourMap("sign", rgbOf(colours.ground));
  for (let column = 0; column < frame.columns; column++) {
    const cell = row * frame.columns + column;
    if (frame.states[cell] === NOT_MEASURED) continue;
    const share = (frame.mean[cell] / frame.limit + 1) / 2;
    context.fillStyle = `rgb(${map.at(share).join(" ")})`;
    context.fillRect(column, 0, 1, HEIGHT);
  }
  const width = (frame.last_step + 1 - frame.first_step) / frame.columns;
  context.fillStyle = colours.ink;
  context.fillRect((step - frame.first_step) / width, 0, Math.max(1, frame.columns / 400), HEIGHT);
}
