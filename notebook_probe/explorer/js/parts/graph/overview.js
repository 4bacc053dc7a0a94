/** The whole graph in a strip at its side, with a frame around what is in sight: press or drag to go there. */

import { element, listener, penOf, setHidden } from "../../dom.js";
import { hides } from "./camera.js";

const WIDTH_PX = 84;
const MOST_SCALE = 0.5; // of boxes that are few: no larger than that
const LEAST_PX = 1; // of a box

/** @typedef {{ layout: GraphLayout, camera: GraphCamera, room: GraphRoom, colours: Colours }} OverviewPlace */
/** @typedef {Pick<GraphLook, "marked" | "holding" | "valueOf">} OverviewLook */

/**
 * `goTo(x, y)` takes a point of the plane into the middle.
 * @param {(x: number, y: number) => void} goTo
 * @param {AbortSignal} signal
 */
export function createOverview(goTo, signal) {
  const canvas = element("canvas");
  const sight = element("i", { class: "nbp-graph-sight" });
  const title = "The whole graph: press or drag to see another part";
  const el = element("div", { class: "nbp-graph-overview", title, "aria-hidden": "true", hidden: "" }, canvas, sight);
  const listen = listener(signal);
  const scale = { x: 1, y: 1 };
  let isHeld = false;
  /** @type {GraphLayout | null} */
  let painted = null; // null: what is painted is no longer right

  listen(el, "pointerdown", (event) => {
    if (event.button !== 0) return;
    isHeld = true;
    el.setPointerCapture(event.pointerId);
    follow(event);
  });
  listen(el, "pointermove", (event) => {
    if (isHeld) follow(event);
  });
  listen(el, "pointerup", () => (isHeld = false));
  listen(el, "pointercancel", () => (isHeld = false));

  /** @param {PointerEvent} event */
  function follow(event) {
    event.preventDefault();
    const { left, top } = canvas.getBoundingClientRect();
    goTo((event.clientX - left) / scale.x, (event.clientY - top) / scale.y);
  }

  /**
   * @param {OverviewPlace} place
   * @param {OverviewLook} look
   */
  function draw(place, look) {
    const { layout, camera, room } = place;
    const isNeeded = hides(camera, layout, room);
    setHidden(el, !isNeeded);
    if (!isNeeded) return;
    if (painted !== layout) paint(place, look);
    painted = layout;
    const [x, width] = clipped(camera.x, room.width / camera.zoom, layout.width, scale.x);
    const [y, height] = clipped(camera.y, room.height / camera.zoom, layout.height, scale.y);
    sight.style.transform = `translate(${x}px, ${y}px)`;
    sight.style.width = `${width}px`;
    sight.style.height = `${height}px`;
  }

  /**
   * Each closed box in its color; frames of open modules stay out, they would cover each other.
   * @param {OverviewPlace} place
   * @param {OverviewLook} look
   */
  function paint({ layout, room, colours }, { marked, holding, valueOf }) {
    scale.x = Math.min(MOST_SCALE, WIDTH_PX / layout.width);
    scale.y = Math.min(MOST_SCALE, el.clientHeight / layout.height);
    const [width, height] = [layout.width * scale.x, layout.height * scale.y];
    const ratio = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.ceil(width * ratio), Math.ceil(height * ratio)];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    const context = penOf(canvas);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const item of layout.items) {
      if (item.isOpen) continue;
      const rgb = valueOf(item)?.rgb;
      const isMarked = marked.has(item.key) || holding.has(item.key);
      context.fillStyle = isMarked ? colours.brand : rgb ? `rgb(${rgb.join(", ")})` : colours.edge;
      const size = [item.width * scale.x, item.height * scale.y].map((px) => Math.max(LEAST_PX, px));
      context.fillRect(item.x * scale.x, item.y * scale.y, size[0], size[1]);
    }
  }

  return {
    el,
    draw,
    /** The values, marks or colors have changed. */
    forget: () => (painted = null),
  };
}

/**
 * Place and size in pixels of the strip, within it.
 * @param {number} from
 * @param {number} size
 * @param {number} whole
 * @param {number} scale
 */
function clipped(from, size, whole, scale) {
  const start = Math.min(whole, Math.max(0, from));
  const end = Math.min(whole, Math.max(0, from + size));
  return [start * scale, (end - start) * scale];
}
