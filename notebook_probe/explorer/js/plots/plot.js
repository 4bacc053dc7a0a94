/** A canvas that fits its place: device pixels, one paint per animation frame, the newest wins. */

import { element, penOf, setAttribute, setHidden, setText } from "../dom.js";

/** @typedef {(context: CanvasRenderingContext2D, width: number, height: number) => void} PaintPlot */
/**
 * @typedef {Pick<PanelParts, "fail" | "signal"> & {
 *   className: string,
 *   label: string,
 *   paint: PaintPlot,
 *   resized: (width: number) => void,
 * }} PlotOptions
 */

const KEPT_TIMES = 31;

/**
 * `paint(context, width, height)` in CSS pixels; `request()` asks for the next frame.
 * @param {PlotOptions} parts
 */
export function createPlot({ className, label, paint, resized, fail, signal }) {
  const canvas = element("canvas", {
    class: className,
    tabindex: "0",
    role: "img",
    "aria-label": label,
  });
  const cursor = element("div", { class: "nbp-cursor", hidden: "" });
  const pin = element("div", { class: "nbp-pin", hidden: "" });
  const band = element("div", { class: "nbp-band", hidden: "" });
  const tip = element("div", { class: "nbp-tip", hidden: "" });
  const note = element("div", { class: "nbp-note", hidden: "" });
  const el = element("div", { class: "nbp-plot" }, canvas, band, cursor, pin, note, tip);
  const context = penOf(canvas);
  /** @type {number[]} */
  const times = [];
  let pending = 0;
  const size = { width: 0, height: 0 };

  function draw() {
    pending = 0;
    if (!size.width || !size.height) return;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    const start = performance.now();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, size.width, size.height);
    try {
      paint(context, size.width, size.height);
    } catch (error) {
      fail(error); // shown in the panel: a console that nobody opens would hide it
    }
    times.push(performance.now() - start);
    if (times.length > KEPT_TIMES) times.shift();
    canvas.dataset.drawMs = median(times).toFixed(2);
  }

  const request = () => {
    if (!pending && !signal.aborted) pending = requestAnimationFrame(draw);
  };
  const observer = new ResizeObserver(() => {
    [size.width, size.height] = [el.clientWidth, el.clientHeight];
    resized(size.width);
    request();
  });
  observer.observe(el);
  signal.addEventListener("abort", () => {
    observer.disconnect();
    cancelAnimationFrame(pending);
  });
  return { el, canvas, cursor, pin, band, note, tip, size, request };
}

/** @param {number[]} values */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}

/**
 * Neither the dashed line nor a tip.
 * @param {Plot} plot
 */
export function hideCursor(plot) {
  setHidden(plot.cursor, true);
  hideTip(plot);
}

/**
 * The dashed line at a step, or nothing where it lies outside the axis.
 * @param {Plot} plot
 * @param {number} x
 * @param {number} left
 * @param {number} right
 * @param {number} top
 * @param {number} bottom
 */
export function placeCursor(plot, x, left, right, top, bottom) {
  const outside = !(x >= left - 0.5 && x <= right + 0.5);
  setHidden(plot.cursor, outside);
  if (outside) return;
  plot.cursor.style.transform = `translate(${x.toFixed(1)}px, ${top}px)`;
  plot.cursor.style.height = `${bottom - top}px`;
}

/**
 * Where the axes of a canvas lie and which steps they span, for tests and tools.
 * @param {HTMLCanvasElement} canvas
 * @param {Box} box
 * @param {Axis} axis
 */
export function describeAxes(canvas, { left, top, right, bottom }, axis) {
  setAttribute(canvas, "data-box", JSON.stringify([left, top, right, bottom]));
  setAttribute(canvas, "data-axis", JSON.stringify([axis.low, axis.high]));
}

/**
 * A sentence where a picture would be; none hides it.
 * @param {Plot} plot
 * @param {string} text
 */
export function showNote(plot, text) {
  setText(plot.note, text);
  setHidden(plot.note, !text);
}

/** @param {Plot} plot */
export function hideTip(plot) {
  setHidden(plot.tip, true);
  setHidden(plot.pin, true);
}

/**
 * A dot on the point that the tip speaks of.
 * @param {Plot} plot
 * @param {number} x
 * @param {number} y
 */
export function placePin(plot, x, y) {
  setHidden(plot.pin, false);
  plot.pin.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
}

/**
 * Rows of text beside a point, on the side where there is room.
 * @param {Plot} plot
 * @param {number} x
 * @param {number} y
 * @param {Node[]} rows
 */
export function showTip(plot, x, y, rows) {
  plot.tip.replaceChildren(...rows);
  setHidden(plot.tip, false);
  const { offsetWidth: width, offsetHeight: height } = plot.tip;
  const left = x + 14 + width > plot.size.width ? Math.max(0, x - 14 - width) : x + 14;
  const top = Math.min(Math.max(0, y - height / 2), Math.max(0, plot.size.height - height));
  plot.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}
