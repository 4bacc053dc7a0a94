/** The hatching of what was not measured. */

import { penOf } from "../../dom.js";
import { valueOr } from "../../maps.js";

/** @type {Map<string, HTMLCanvasElement>} */
const tiles = new Map();

/**
 * Fine diagonal lines as a fill style.
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 */
export function hatching(context, colour) {
  const tile = valueOr(tiles, colour, () => hatchTile(colour));
  const pattern = context.createPattern(tile, "repeat");
  pattern?.setTransform(new DOMMatrix().scale(0.5)); // as fine on a screen with many pixels
  return pattern ?? colour;
}

/** @param {string} colour */
function hatchTile(colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 12;
  const pen = penOf(tile);
  pen.strokeStyle = colour;
  pen.globalAlpha = 0.55;
  pen.lineWidth = 1.2;
  for (const shift of [-12, 0, 12]) {
    pen.moveTo(shift, 12);
    pen.lineTo(shift + 12, 0);
  }
  pen.stroke();
  return tile;
}
