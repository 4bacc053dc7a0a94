/** A strip of the heat map beside each module's name: the tree shows where to look. */

const paintedStrips = new WeakMap();

/** Draw the module's row of the heat map, once per picture. */
export function paintHeatStrip(canvas, path, state) {
  const picture = state.heatPicture?.image ?? null;
  const last = paintedStrips.get(canvas);
  if (last && last.picture === picture && last.path === path) return;
  paintedStrips.set(canvas, { picture, path });
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  const row = picture ? state.heatPicture.frame.index.get(path) : undefined;
  if (row === undefined) return;
  context.drawImage(picture, 0, row, picture.width, 1, 0, 0, canvas.width, canvas.height);
}
