/** Mouse, pen and touch on a plot: hover, click, drag a range, double-click. */

import { listener, setHidden } from "../dom.js";

/**
 * @typedef {{
 *   hover(x: number, y: number): void,
 *   leave(): void,
 *   click(x: number, y: number, second: boolean): void,
 *   range(x0: number, x1: number): void,
 *   reset(): void,
 * }} PlotCalls
 */

const DRAG_PX = 4;

/**
 * Calls `hover(x, y)`, `leave()`, `click(x, y, second)`, `range(x0, x1)`, `reset()`, in CSS pixels;
 * `second` marks the second click of a double-click.
 * @param {Plot} plot
 * @param {() => { left: number, right: number }} bounds
 * @param {PlotCalls} calls
 * @param {AbortSignal} signal
 */
export function trackPointer(plot, bounds, calls, signal) {
  /** @type {[number, number] | null} */
  let start = null;
  let dragged = false;
  /** @type {(event: MouseEvent) => [number, number]} */
  const at = (event) => {
    const box = plot.el.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  /** @type {(x: number) => number} */
  const within = (x) => Math.min(Math.max(x, bounds().left), bounds().right);
  const listen = listener(signal);

  listen(plot.canvas, "pointerdown", (event) => {
    if (event.button !== 0) return;
    start = at(event);
    plot.canvas.setPointerCapture(event.pointerId); // a range may end outside the canvas
  });
  listen(plot.canvas, "pointermove", (event) => {
    const [x, y] = at(event);
    if (start && Math.abs(x - start[0]) > DRAG_PX) showBand(within(start[0]), within(x));
    calls.hover(x, y);
  });
  listen(plot.canvas, "pointerup", (event) => {
    if (!start) return;
    const [x] = at(event);
    const from = start[0];
    end();
    dragged = Math.abs(x - from) > DRAG_PX; // the browser sends a click after a drag, too
    const ends = [within(from), within(x)];
    if (dragged) calls.range(Math.min(...ends), Math.max(...ends));
  });
  listen(plot.canvas, "click", (event) => {
    const [x, y] = at(event);
    if (!dragged) calls.click(x, y, event.detail > 1);
  });
  listen(plot.canvas, "pointercancel", end);
  listen(plot.canvas, "pointerleave", () => calls.leave());
  listen(plot.canvas, "dblclick", () => calls.reset());

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
    start = null;
    setHidden(plot.band, true);
  }
}
