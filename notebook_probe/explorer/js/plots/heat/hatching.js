/** The hatching of what was not measured. */

import { penOf } from "../../dom.js";

const tiles = new Map();

/**
 * Fine diagonal lines as a fill style.
 * @param {CanvasRenderingContext2D} context
 */
export function hatching(context, colour) {
  if (!tiles.has(colour)) tiles.set(colour, hatchTile(colour));
  const pattern = context.createPattern(tiles.get(colour), "repeat");
  pattern.setTransform(new DOMMatrix().scale(0.5)); // as fine on a screen with many pixels
  return pattern;
}

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
