/** On the rows of the heat map: a flag where a row begins to differ from the same one of another run. */

const LEAST_PX = 7; // of a row that has room for the flag itself

/**
 * @param {CanvasRenderingContext2D} context
 * @param {HeatView} view
 */
export function paintFlags(context, { axis, box, colours, frame, parted }) {
  const height = (box.bottom - box.top) / frame.rows.length;
  context.fillStyle = colours.ink;
  for (const [module, step] of parted) {
    const row = frame.index.get(module);
    const x = Math.round(axis.place(step));
    if (row === undefined || x < box.left || x > box.right) continue;
    const top = box.top + row * height;
    context.fillRect(x - 0.75, top + 1, 1.5, height - 2);
    if (height < LEAST_PX) continue;
    context.beginPath();
    context.moveTo(x, top + 1);
    context.lineTo(x + 7, top + 1);
    context.lineTo(x, top + 7);
    context.fill();
  }
}
