/** A strip of the heat map beside each module's name: the tree shows where to look. */

/** `paint(canvas, path)` draws the module's row, again only when the picture is a new one. */
export function createSwatches(state) {
  const painted = new WeakMap();
  return {
    paint(canvas, path) {
      const picture = state.heatPicture?.image ?? null;
      const last = painted.get(canvas);
      if (last && last.picture === picture && last.path === path) return;
      painted.set(canvas, { picture, path });
      const context = canvas.getContext("2d");
      context.clearRect(0, 0, canvas.width, canvas.height);
      const row = picture && state.heat.index.get(path);
      if (row === null || row === undefined) return;
      context.drawImage(picture, 0, row, picture.width, 1, 0, 0, canvas.width, canvas.height);
    },
  };
}
