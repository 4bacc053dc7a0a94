/** Mouse, pen and keys on the graph: drag, wheel, click, double-click, arrows. */

import { listener } from "../../dom.js";
import { neighbour } from "./moves.js";

/**
 * @typedef {{
 *   choose: (item: GraphItem, second: boolean) => void,
 *   turn: (item: GraphItem, undo?: boolean) => void,
 *   draw: (item: GraphItem) => void,
 *   hover: (item: GraphItem | null) => void,
 * }} GraphCalls
 */

const DRAG_PX = 4;
const LARGER = 1.25;
const MOST_TURN = 0.4; // of one turn of the wheel

/**
 * Calls `choose(item, second)`, `turn(item)`, `draw(item)`, `hover(item)`; `item` null beside the boxes.
 * @param {GraphPlane} plane
 * @param {GraphCalls} calls
 * @param {AbortSignal} signal
 */
export function createHands(plane, { choose, turn, draw, hover }, signal) {
  /** @type {{ x: number, y: number } | null} */
  let start = null; // { x, y } of a press
  let dragged = false;
  const listen = listener(signal);
  /** @type {(event: MouseEvent) => [number, number]} */
  const at = (event) => {
    const box = plane.el.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  listen(plane.el, "pointerdown", (event) => {
    if (event.button !== 0) return;
    start = { x: event.clientX, y: event.clientY };
    dragged = false;
  });
  listen(plane.el, "pointermove", (event) => {
    if (!start) return hover(plane.itemAt(event.target));
    const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
    if (!dragged && Math.hypot(dx, dy) < DRAG_PX) return undefined;
    if (!dragged) plane.el.setPointerCapture(event.pointerId); // a click keeps its box: not before
    dragged = true;
    start = { x: event.clientX, y: event.clientY };
    hover(null);
    return plane.pan(dx, dy);
  });
  listen(plane.el, "pointerup", () => (start = null));
  listen(plane.el, "pointercancel", () => (start = null));
  listen(plane.el, "pointerleave", () => hover(null));
  listen(plane.el, "click", (event) => {
    const item = plane.itemAt(event.target);
    if (dragged || !item) return;
    if (event.target.closest(".nbp-graph-fold")?.textContent) turn(item);
    else choose(item, event.detail > 1);
  });
  listen(plane.el, "dblclick", (event) => {
    const item = plane.itemAt(event.target);
    if (item && !event.target.closest(".nbp-graph-fold")) turn(item, true);
    else if (!item) plane.fit();
  });
  listen(plane.el, "wheel", wheeled, { passive: false });
  listen(plane.el, "keydown", pressed);

  const larger = () => plane.zoom(LARGER);
  /** @type {Record<string, () => void>} */
  const keys = { "+": larger, "=": larger, "-": () => plane.zoom(1 / LARGER), 0: plane.fit };

  /** @param {WheelEvent} event */
  function wheeled(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const turned = Math.min(MOST_TURN, Math.abs(event.deltaY) / 400);
    plane.zoom(Math.exp(-Math.sign(event.deltaY) * turned), at(event));
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const item = plane.itemOf(plane.current());
    if (event.key.startsWith("Arrow")) {
      const next = plane.itemOf(neighbour(plane.layout(), plane.current(), event.key));
      if (next) step(next);
    } else if (event.key === "Enter" && item) (event.shiftKey ? draw : turn)(item);
    else if (event.key in keys) keys[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {GraphItem} item */
  function step(item) {
    plane.stand(item.key, true);
    plane.reach(item.key);
    choose(item, true);
  }
}
