/** Mouse, pen and touch on a plot: hover, click, drag a range, move and zoom the axis, double-click. */

import { listener, setAttribute, setHidden } from "../dom.js";

/**
 * @typedef {{
 *   hover(x: number, y: number): void,
 *   leave(): void,
 *   click(x: number, y: number, second: boolean): void,
 *   range(x0: number, x1: number): void,
 *   pan(from: number, to: number): void,
 *   zoom(x: number, factor: number): void,
 *   reset(): void,
 * }} PlotCalls
 */
/** @typedef {{ left: number, right: number, foot: number }} PlotBounds */

const DRAG_PX = 4;
const NOWHERE = { left: 0, right: 0, foot: Infinity };

/**
 * Calls `hover(x, y)`, `leave()`, `click(x, y, second)`, `range(x0, x1)`, `pan(from, to)`,
 * `zoom(x, factor)`, `reset()`, in CSS pixels; `second` marks the second click of a double-click.
 * @param {Plot} plot
 * @param {() => PlotBounds | null} bounds where its axes are; null before the first paint
 * @param {PlotCalls} calls
 * @param {AbortSignal} signal
 */
export function trackPointer(plot, bounds, calls, signal) {
  /** @type {[number, number] | null} */
  let start = null;
  let dragged = false;
  /** @type {number | null} */
  let held = null; // where the axis was taken hold of, or moved to since
  /** @type {(event: MouseEvent) => [number, number]} */
  const at = (event) => {
    const box = plot.el.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const box = () => bounds() ?? NOWHERE;
  /** @type {(x: number) => number} */
  const within = (x) => Math.min(Math.max(x, box().left), box().right);
  const listen = listener(signal);

  listen(plot.canvas, "pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x, y] = at(event);
    start = [x, y];
    held = event.shiftKey || y > box().foot ? x : null;
    plot.canvas.setPointerCapture(event.pointerId); // a range may end outside the canvas
  });
  listen(plot.canvas, "pointermove", (event) => {
    const [x, y] = at(event);
    const isDrag = start !== null && Math.abs(x - start[0]) > DRAG_PX;
    if (isDrag && held === null) showBand(within(start?.[0] ?? x), within(x));
    else if (isDrag || plot.canvas.dataset.hand) return move(x);
    calls.hover(x, y);
  });
  listen(plot.canvas, "pointerup", (event) => {
    if (!start) return;
    const [x] = at(event);
    const [from, isMoved] = [start[0], held !== null];
    end();
    dragged = Math.abs(x - from) > DRAG_PX; // the browser sends a click after a drag, too
    const ends = [within(from), within(x)];
    if (dragged && !isMoved) calls.range(Math.min(...ends), Math.max(...ends));
  });
  listen(plot.canvas, "click", (event) => {
    const [x, y] = at(event);
    if (!dragged) calls.click(x, y, event.detail > 1);
  });
  listen(plot.canvas, "pointercancel", end);
  listen(plot.canvas, "pointerleave", () => calls.leave());
  listen(plot.canvas, "dblclick", () => calls.reset());
  listen(plot.canvas, "wheel", wheeled, { passive: false });

  /** @param {number} x */
  function move(x) {
    if (held === null) return;
    if (!plot.canvas.dataset.hand) calls.leave(); // a tip would stay behind
    setAttribute(plot.canvas, "data-hand", "closed");
    calls.pan(held, x);
    held = x;
  }

  /**
   * A wheel alone scrolls the page; with Ctrl or Cmd, as a pinch on a touchpad comes, it zooms.
   * @param {WheelEvent} event
   */
  function wheeled(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    calls.zoom(within(at(event)[0]), zoomFactor(event));
  }

  /**
   * @param {number} x0
   * @param {number} x1
   */
  function showBand(x0, x1) {
    setHidden(plot.band, false);
    plot.band.style.left = `${Math.min(x0, x1)}px`;
    plot.band.style.width = `${Math.abs(x1 - x0)}px`;
  }

  function end() {
    start = held = null;
    setAttribute(plot.canvas, "data-hand", null);
    setHidden(plot.band, true);
  }
}

const [LINES, FEW_PX] = [1, 20];

/**
 * By how much the shown range grows: a notch of a mouse sends 100 pixels or 3 lines, a pinch a few pixels.
 * @param {Pick<WheelEvent, "deltaY" | "deltaMode">} event
 */
function zoomFactor({ deltaY, deltaMode }) {
  const pixels = deltaMode === LINES ? deltaY * 33 : deltaY;
  const speed = Math.abs(pixels) < FEW_PX ? 0.012 : 0.0024;
  return Math.exp(Math.min(Math.max(pixels * speed, -0.7), 0.7));
}
