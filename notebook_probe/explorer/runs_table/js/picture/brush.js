/** A drag on the picture: a range along one parallel axis, or a rectangle across both of a scatter. */

const NEAR_AXIS = 16; // pixels beside an axis that belong to it
const LEAST_DRAG = 4;

/** @typedef {{ x: number, y: number }} Point */

/**
 * @param {{
 *   canvas: HTMLCanvasElement,
 *   places: () => RunPlaces | null,
 *   range: (changes: Map<string, ColumnRange | null>) => void,
 *   pointed: (at: number, point: Point | null) => void,
 *   open: (at: number) => void,
 *   among: () => number[],
 *   signal: AbortSignal,
 * }} parts
 */
export function createBrush({ canvas, places, range, pointed, open, among, signal }) {
  /** @type {(Point & { axis: number, moved: boolean }) | null} */
  let from = null;

  canvas.addEventListener("pointerdown", down, { signal });
  canvas.addEventListener("pointermove", moved, { signal });
  canvas.addEventListener("pointerup", up, { signal });
  canvas.addEventListener("pointercancel", () => (from = null), { signal });
  canvas.addEventListener("pointerleave", () => !from && pointed(-1, null), { signal });

  /** @param {PointerEvent} event */
  function down(event) {
    const found = places();
    if (event.button || !found) return;
    const point = pointOf(event);
    from = { ...point, axis: axisAt(found, point.x), moved: false };
    canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  function moved(event) {
    const found = places();
    if (!found) return;
    const point = pointOf(event);
    if (!from) {
      pointed(found.nearest(point.x, point.y, among()), point);
      return;
    }
    from.moved ||= Math.hypot(point.x - from.x, point.y - from.y) >= LEAST_DRAG;
    if (!from.moved) return;
    pointed(-1, null);
    const sides = found.kind === "scatter" ? [0, 1] : from.axis < 0 ? [] : [from.axis];
    const start = from;
    range(new Map(sides.map((k) => [found.axes[k].name, rangeOf(found, k, start, point)])));
  }

  /** @param {PointerEvent} event */
  function up(event) {
    const [found, start] = [places(), from];
    from = null;
    if (!found || !start || start.moved) return;
    const at = found.nearest(start.x, start.y, among());
    if (found.kind === "parallel" && start.axis >= 0) range(new Map([[found.axes[start.axis].name, null]]));
    else if (at >= 0) open(at);
    else range(new Map(found.axes.map(({ name }) => [name, null])));
    event.preventDefault();
  }

  /** @param {PointerEvent} event */
  function pointOf(event) {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
}

/**
 * The axis that a place belongs to, -1 for none.
 * @param {RunPlaces} places
 * @param {number} x
 */
function axisAt({ kind, xs }, x) {
  return kind === "parallel" ? xs.findIndex((one) => Math.abs(one - x) <= NEAR_AXIS) : -1;
}

/**
 * @param {RunPlaces} places
 * @param {number} k
 * @param {Point} from
 * @param {Point} to
 */
function rangeOf({ kind, axes, shareAt }, k, from, to) {
  const side = kind === "scatter" && k === 0 ? "x" : "y";
  const shares = [shareAt(k, from[side]), shareAt(k, to[side])].sort((one, other) => one - other);
  const [low, high] = shares.map((share) => Math.min(1, Math.max(0, share)));
  return axes[k].rangeOf(low, high);
}
