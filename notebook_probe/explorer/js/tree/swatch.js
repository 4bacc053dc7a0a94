/** Beside each module's name: a strip of the heat map, for the whole model the first scalar as a line. */

import { ROOT } from "../names.js";
import { paintSparkline } from "../controls/sparkline.js";

const painted = new WeakMap();

/** Draw the module's row of the heat map, or the line, once per picture. */
export function paintSwatch(canvas, path, state, colour) {
  const scalar = path === ROOT ? state.status.scalar : null;
  const picture = scalar ?? state.heatPicture?.image ?? null;
  const last = painted.get(canvas);
  if (last && last.picture === picture && last.path === path && last.colour === colour) return;
  painted.set(canvas, { picture, path, colour });
  canvas.classList.toggle("nbp-line-swatch", Boolean(scalar));
  if (scalar) paintSparkline(canvas, scalar[2], colour);
  else paintStrip(canvas, path, state);
}

function paintStrip(canvas, path, { heatPicture }) {
  [canvas.width, canvas.height] = [128, 10];
  const place = heatPicture?.placeOf(path);
  if (!place) return;
  const { image } = heatPicture;
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, place[0], image.width, place[1], 0, 0, canvas.width, canvas.height);
}
