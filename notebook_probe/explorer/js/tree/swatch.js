/** Beside each module's name: a strip of the heat map, for the whole model the first scalar as a line. */

import { penOf } from "../dom.js";
import { ROOT } from "../names.js";
import { paintSparkline } from "../controls/sparkline.js";

/** @typedef {{ picture: unknown, path: string, colour: string }} PaintedSwatch */

const ROOM_PX = 60; // with the gap beside it

/** @type {WeakMap<HTMLCanvasElement, PaintedSwatch>} */
const painted = new WeakMap();

/**
 * What the swatch of a module leaves less for its name; 0 where there is nothing to draw.
 * @param {string} path
 * @param {Pick<PanelState, "status" | "heatPicture">} state1
 */
export function swatchRoom(path, { status, heatPicture }) {
  return (path === ROOT && status.scalar) || heatPicture?.placeOf(path) ? ROOM_PX : 0;
}

/**
 * Draw the module's row of the heat map, or the line, once per picture.
 * @param {HTMLCanvasElement} canvas
 * @param {string} path
 * @param {PanelState} state
 * @param {string} colour
 */
export function paintSwatch(canvas, path, state, colour) {
  const scalar = path === ROOT ? state.status.scalar : null;
  const picture = scalar ?? state.heatPicture?.image ?? null;
  const last = painted.get(canvas);
  if (last && last.picture === picture && last.path === path && last.colour === colour) return;
  painted.set(canvas, { picture, path, colour });
  canvas.classList.toggle("nbp-line-swatch", Boolean(scalar));
  canvas.classList.toggle("nbp-no-swatch", !swatchRoom(path, state));
  if (scalar) paintSparkline(canvas, scalar[2], colour);
  else paintStrip(canvas, path, state);
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {string} path
 * @param {Pick<PanelState, "heatPicture">} state2
 */
function paintStrip(canvas, path, { heatPicture }) {
  [canvas.width, canvas.height] = [128, 10];
  const place = heatPicture?.placeOf(path);
  if (!heatPicture || !place) return;
  const { image } = heatPicture;
  const context = penOf(canvas);
  const [top, rows] = place;
  // A scaled row would blend with the rows around it, and with their hatching: first its columns, then its height.
  const height = rows === 1 ? 1 : canvas.height;
  context.drawImage(image, 0, top, image.width, rows, 0, 0, canvas.width, height);
  if (rows > 1) return;
  context.imageSmoothingEnabled = false;
  context.globalCompositeOperation = "copy";
  context.drawImage(canvas, 0, 0, canvas.width, 1, 0, 0, canvas.width, canvas.height);
}
