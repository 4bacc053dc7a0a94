/** Pictures of more rows than there are pixels, blended to those once: scaling them takes long. */

import { penOf } from "../../dom.js";

/** @type {WeakMap<HTMLCanvasElement, HTMLCanvasElement>} */
const known = new WeakMap();

/**
 * The image with as many rows as the screen has pixels for it; the same image where it has fewer.
 * @param {HTMLCanvasElement} image
 * @param {number} height in CSS pixels
 */
export function reduced(image, height) {
  const rows = Math.max(1, Math.round(height * (devicePixelRatio || 1)));
  if (image.height <= rows) return image;
  const last = known.get(image);
  if (last?.height === rows) return last;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, rows];
  penOf(canvas).drawImage(image, 0, 0, image.width, rows);
  known.set(image, canvas);
  return canvas;
}
