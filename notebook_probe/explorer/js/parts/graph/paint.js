/** The edges of the graph on a canvas, with the shapes of what flows along them. */

/**
 * @typedef {{
 *   routes: GraphRoute[],
 *   camera: GraphCamera,
 *   room: GraphRoom,
 *   colours: Colours,
 *   lit: Set<string>,
 *   labels: GraphLabel[],
 * }} GraphView
 */

const LABEL_FONT_PX = 10;
const LEAST_FONT_PX = 10; // on the screen
const LEGIBLE = 0.7; // zoom from which shapes are written: there is room for a line between two boxes
const HEAD_PX = 5;

/**
 * `lit` are keys of boxes: edges from and to them stand out.
 * @param {CanvasRenderingContext2D} context
 * @param {GraphView} view
 */
export function paintRoutes(context, { routes, camera, room, colours, lit, labels }) {
  const { x, y, zoom } = camera;
  context.save();
  context.scale(zoom, zoom);
  context.translate(-x, -y);
  const seen = routes.filter(({ points }) => crosses(points, camera, room));
  /** @type {(route: GraphRoute) => boolean} */
  const isLit = ({ from, to }) => [from, to].some((key) => key !== null && lit.has(key));
  for (const on of [false, true]) {
    context.strokeStyle = context.fillStyle = on ? colours.brand : colours.edge;
    context.lineWidth = (on ? 1.8 : 1.2) / Math.max(zoom, 0.5);
    for (const route of seen) if (isLit(route) === on) paintRoute(context, route);
  }
  const near = labels.filter((label) => crosses([[label.x, label.y]], camera, room));
  if (zoom >= LEGIBLE) paintLabels(context, near, colours, zoom);
  context.restore();
}

/**
 * @param {number[][]} points
 * @param {GraphCamera} camera
 * @param {GraphRoom} room
 */
function crosses(points, { x, y, zoom }, { width, height }) {
  const [right, bottom] = [x + width / zoom, y + height / zoom];
  const beyond = [
    points.every(([at]) => at < x - 150),
    points.every(([at]) => at > right + 150),
    points.every(([, at]) => at < y - 50),
    points.every(([, at]) => at > bottom + 50),
  ];
  return !beyond.includes(true);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {GraphRoute} route
 */
function paintRoute(context, { points, ends }) {
  context.beginPath();
  points.forEach(([x, y], k) => {
    if (k === 0) return context.moveTo(x, y);
    const [fromX, fromY] = points[k - 1];
    if (k % 2 || fromX === x) return context.lineTo(x, y);
    const half = (fromY + y) / 2;
    return context.bezierCurveTo(fromX, half, x, half, x, y);
  });
  context.stroke();
  if (ends) paintHead(context, points[points.length - 1], points[points.length - 2]);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number[]} end
 * @param {number[]} before
 */
function paintHead(context, [x, y], [, before]) {
  const back = before > y ? HEAD_PX : -HEAD_PX;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - HEAD_PX * 0.6, y + back);
  context.lineTo(x + HEAD_PX * 0.6, y + back);
  context.closePath();
  context.fill();
}

/**
 * A little smaller than the words in the boxes, down to what can be read.
 * @param {CanvasRenderingContext2D} context
 * @param {GraphLabel[]} labels
 * @param {Colours} colours
 * @param {number} zoom
 */
function paintLabels(context, labels, colours, zoom) {
  context.font = colours.font.replace(/^\d+px/, `${Math.max(LABEL_FONT_PX, LEAST_FONT_PX / zoom)}px`);
  context.fillStyle = colours.soft;
  context.textBaseline = "middle";
  for (const { x, y, text, align } of labels) {
    context.textAlign = align;
    context.fillText(text, x, y);
  }
}
