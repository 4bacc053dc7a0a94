/** Visible part of the plane: `{ x, y, zoom }`, with the plane's point at the upper left. */

const LEAST = 0.04;
const MOST = 2.5;
const LEGIBLE = 0.8; // no smaller at first: all words fit their boxes, and the overview leads to the rest
const MARGIN = 14;
const OVERVIEW = 100; // width that the overview takes, where it is shown
const HIDDEN = 12; // pixels of the graph that may be out of sight before the overview is shown

/**
 * Everything in the middle of `room`; what is too large for text that can be read begins at its top, and
 * leaves room for the overview.
 * @param {{ width: number, height: number }} plane
 * @param {GraphRoom} room
 * @returns {GraphCamera}
 */
export function fitted(plane, room) {
  const fits = Math.min((room.width - 2 * MARGIN) / plane.width, (room.height - 2 * MARGIN) / plane.height);
  const zoom = Math.min(1, Math.max(LEGIBLE, fits));
  const y = plane.height * zoom > room.height ? -MARGIN / zoom : (plane.height - room.height / zoom) / 2;
  const width = fits < zoom ? room.width - OVERVIEW : room.width;
  const beside = (plane.width - width / zoom) / 2;
  return { x: plane.width * zoom > width ? -MARGIN / zoom : beside, y, zoom };
}

/**
 * Whether a part of the plane is out of sight.
 * @param {GraphCamera} camera
 * @param {{ width: number, height: number }} plane
 * @param {GraphRoom} room
 */
export function hides({ x, y, zoom }, { width, height }, room) {
  const beyond = [x, y, width - x - room.width / zoom, height - y - room.height / zoom];
  return beyond.some((far) => far * zoom > HIDDEN);
}

/**
 * Larger by `factor`, with the same point under the pixel `[x, y]`.
 * @param {GraphCamera} camera
 * @param {number} factor
 * @param {number[]} pixel
 * @returns {GraphCamera}
 */
export function zoomed(camera, factor, [x, y]) {
  const zoom = Math.min(MOST, Math.max(LEAST, camera.zoom * factor));
  return { x: camera.x + x / camera.zoom - x / zoom, y: camera.y + y / camera.zoom - y / zoom, zoom };
}

/**
 * @param {GraphCamera} camera
 * @param {number} dx
 * @param {number} dy
 * @returns {GraphCamera}
 */
export function panned(camera, dx, dy) {
  return { ...camera, x: camera.x - dx / camera.zoom, y: camera.y - dy / camera.zoom };
}

/**
 * Moved as little as brings an item into sight.
 * @param {GraphCamera} camera
 * @param {GraphItem} item
 * @param {GraphRoom} room
 * @returns {GraphCamera}
 */
export function inSight(camera, item, room) {
  /** @type {(at: number, size: number, from: number, seen: number) => number} */
  const along = (at, size, from, seen) => {
    const margin = Math.min(MARGIN / camera.zoom, seen / 4);
    if (size > seen - 2 * margin || at < from + margin) return at - margin;
    return at + size > from + seen - margin ? at + size + margin - seen : from;
  };
  const [width, height] = [room.width / camera.zoom, room.height / camera.zoom];
  const isIn = item.x >= camera.x && item.x + item.width <= camera.x + width;
  const isSeen = isIn && item.y >= camera.y && item.y + item.height <= camera.y + height;
  if (isSeen) return camera;
  const x = along(item.x, item.width, camera.x, width);
  return { ...camera, x, y: along(item.y, item.height, camera.y, height) };
}

/**
 * With a point of the plane in the middle.
 * @param {GraphCamera} camera
 * @param {number[]} point
 * @param {GraphRoom} room
 * @returns {GraphCamera}
 */
export function centred(camera, [x, y], room) {
  return { ...camera, x: x - room.width / camera.zoom / 2, y: y - room.height / camera.zoom / 2 };
}

/**
 * Whether something of a box is seen, or nearly.
 * @param {GraphCamera} camera
 * @param {GraphItem} item
 * @param {GraphRoom} room
 */
export function isNear(camera, { x, y, width, height }, room) {
  const [left, top] = [(x - camera.x) * camera.zoom, (y - camera.y) * camera.zoom];
  const [right, bottom] = [left + width * camera.zoom, top + height * camera.zoom];
  return right > -100 && bottom > -100 && left < room.width + 100 && top < room.height + 100;
}
