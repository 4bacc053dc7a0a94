/** A slider with the present value as a ring; its places count in factors or in differences. */

import { element, listener, setAttribute, setHidden } from "../../dom.js";
import { rateText } from "./rate_text.js";

/** @typedef {{ low: number, high: number, log: boolean, now: number | null, value: number | null }} SliderRange */

const FINE = 0.02;
const COARSE = 0.1;
/** @type {Record<string, number>} */
const STEPS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };

/**
 * `describe({ low, high, log, now, value })`; `changed(value)` is called while it is moved,
 * `letGo(value)` when the pointer lets it go or a key has moved it. Arrows move by 2 %, with Shift
 * by 10 %.
 * @param {object} options
 * @param {string} options.label
 * @param {(value: number) => void} options.changed
 * @param {(value: number) => void} [options.letGo]
 * @param {AbortSignal} options.signal
 */
export function createSlider({ label, changed, letGo = () => {}, signal }) {
  const fill = element("i", { class: "nbp-slider-fill" });
  const ring = element("i", { class: "nbp-slider-ring" }, element("span", {}, "now"));
  const thumb = element("i", { class: "nbp-slider-thumb" });
  const ticks = element("div", { class: "nbp-slider-ticks", "aria-hidden": "true" });
  const rail = element("div", { class: "nbp-slider-rail" }, fill, ring, thumb);
  const el = element(
    "div",
    { class: "nbp-slider", role: "slider", tabindex: "0", "aria-label": label },
    rail,
    ticks,
  );
  /** @type {SliderRange} */
  let range = { low: 0, high: 1, log: false, now: null, value: null };
  let ticked = "";
  const listen = listener(signal);

  listen(el, "pointerdown", (event) => {
    if (isGreyed()) return;
    el.setPointerCapture(event.pointerId); // the thumb follows a hand that leaves the rail
    move(event);
  });
  listen(el, "pointermove", (event) => el.hasPointerCapture(event.pointerId) && move(event));
  listen(el, "pointerup", (event) => {
    if (!el.hasPointerCapture(event.pointerId)) return;
    el.releasePointerCapture(event.pointerId);
    if (range.value !== null) letGo(range.value);
  });
  listen(el, "keydown", (event) => {
    const way = STEPS[event.key];
    if (!way || isGreyed()) return;
    event.preventDefault();
    event.stopPropagation();
    letGo(to(stepped(way * (event.shiftKey ? COARSE : FINE))));
  });

  const isGreyed = () => el.getAttribute("aria-disabled") === "true";

  /** @param {number} share */
  function stepped(share) {
    const { low, high, log } = range;
    const from = range.value ?? range.now ?? low;
    if (!log) return from + share * (high - low);
    return from * (share > 0 ? 1 + share : 1 / (1 - share));
  }

  /** @param {PointerEvent} event */
  function move(event) {
    const { left, width } = rail.getBoundingClientRect();
    const place = Math.min(1, Math.max(0, (event.clientX - left) / width));
    const { low, high, log } = range;
    const value = log ? low * (high / low) ** place : low + place * (high - low);
    to(Number(value.toPrecision(2)));
  }

  /** @param {number} value */
  function to(value) {
    const within = Math.min(range.high, Math.max(range.low, value));
    describe({ ...range, value: within });
    changed(within);
    return within;
  }

  /** @param {number} value */
  function placeOf(value) {
    const { low, high, log } = range;
    const place = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Math.min(1, Math.max(0, place));
  }

  /** @param {SliderRange} told */
  function describe(told) {
    range = told;
    const value = told.value ?? told.now;
    setHidden(ring, told.now === null);
    setHidden(thumb, value === null);
    if (value !== null) thumb.style.left = `${100 * placeOf(value)}%`;
    if (value !== null && told.now !== null) {
      const [from, to] = [placeOf(told.now), placeOf(value)];
      ring.style.left = `${100 * from}%`;
      fill.style.left = `${100 * Math.min(from, to)}%`;
      fill.style.width = `${100 * Math.abs(to - from)}%`;
      ring.classList.toggle("nbp-there", Math.abs(from - to) < 0.004);
    }
    setAttribute(el, "aria-valuemin", told.low);
    setAttribute(el, "aria-valuemax", told.high);
    setAttribute(el, "aria-valuenow", value);
    setAttribute(el, "aria-valuetext", value === null ? "differ" : rateText(value));
    paintTicks();
  }

  function paintTicks() {
    const key = `${range.low} ${range.high} ${range.log}`;
    if (key === ticked) return;
    ticked = key;
    ticks.replaceChildren(...(range.log ? decades() : ends()).map(tick));
  }

  function decades() {
    const [first, last] = [Math.ceil(Math.log10(range.low)), Math.floor(Math.log10(range.high))];
    const whole = Array.from({ length: last - first + 1 }, (_, k) => Number(`1e${first + k}`));
    return whole.flatMap((one) => [
      { at: one, text: power(one, range.low) },
      ...[2, 5].map((times) => ({ at: one * times, text: "" })),
    ]).filter(({ at }) => at <= range.high * 1.001);
  }

  function ends() {
    return [range.low, range.high].map((at) => ({ at, text: rateText(at) }));
  }

  /** @param {{ at: number, text: string }} one */
  function tick({ at, text }) {
    const node = element("i", text ? { class: "nbp-major" } : {}, element("span", {}, text));
    node.style.left = `${100 * placeOf(at)}%`;
    return node;
  }

  return {
    el,
    describe,
    /** @param {string} reason */
    grey(reason) {
      setAttribute(el, "aria-disabled", reason ? "true" : null);
      setAttribute(el, "title", reason || null);
    },
  };
}

/**
 * 1e−5 where it is small, 0.1 and 10 where people write it so.
 * @param {number} value
 * @param {number} low
 */
function power(value, low) {
  if (low >= 0.01) return rateText(value);
  const exponent = Math.round(Math.log10(value));
  return `1e${exponent < 0 ? "−" : ""}${Math.abs(exponent)}`;
}
