/** Mouse, pen and touch on a plot: hover, click, drag a range, double-click. */

import { setHidden } from "../dom.js";

const DRAG_PX = 4;

/**
 * Calls `hover(x, y)`, `leave()`, `click(x, y, second)`, `range(x0, x1)`, `reset()`, in CSS pixels;
 * `second` marks the second click of a double-click.
 * @param {Plot} plot
 * @param {AbortSignal} signal
 */
export function trackPointer(plot, bounds, calls, signal) {
  let start = null;
  let dragged = false;
  const at = (event) => {
    const box = plot.el.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const within = (x) => Math.min(Math.max(x, bounds().left), bounds().right);
  const listen = (type, run) => plot.canvas.addEventListener(type, run, { signal });

  listen("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = at(event);
    plot.canvas.setPointerCapture(event.pointerId);
  });
  listen("pointermove", (event) => {
    const [x, y] = at(event);
    if (start && Math.abs(x - start[0]) > DRAG_PX) showBand(within(start[0]), within(x));
    calls.hover(x, y);
  });
  listen("pointerup", (event) => {
    if (!start) return;
    const [x] = at(event);
    const from = start[0];
    end();
    dragged = Math.abs(x - from) > DRAG_PX;
    if (dragged) calls.range(...[within(from), within(x)].sort((a, b) => a - b));
  });
  listen("click", (event) => {
    if (!dragged) calls.click(...at(event), event.detail > 1);
  });
  listen("pointercancel", end);
  listen("pointerleave", () => calls.leave());
  listen("dblclick", () => calls.reset());

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
