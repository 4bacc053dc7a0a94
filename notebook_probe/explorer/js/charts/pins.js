/** Steps that are pinned in the lines, at most two: their values below the charts, and the difference. */

import { element, setChildren, setHidden, setText } from "../dom.js";
import { exact, grouped, significant } from "../format.js";
import { seriesName } from "../names.js";
import { bringOut, emphasize } from "./emphasis.js";
import { unitsOf } from "../state.js";
import { rgbOf, seriesColour } from "../plots/colour.js";

const MOST_ROWS = 12;
const NEAR_PX = 5; // a click so near to a pinned step takes it away
const LETTERS = ["A", "B"];
const FLAG_PX = 14; // of a letter at its line
const ALONE = "Click another step for the difference.";

/** @typedef {{ value: number, step: number } | null} PinnedValue */

/**
 * `painted()` are the lines as last painted; `el` lies below them.
 * @param {Pick<PanelParts, "state" | "theme" | "signal"> & { painted: () => PaintedLines | null }} parts
 */
export function createPins({ state, theme, painted, signal }) {
  const clear = element("button", { type: "button", class: "nbp-link", "data-action": "clear-pins" }, "clear");
  clear.title = "Remove the pinned steps (Escape)";
  const heads = element("div", { class: "nbp-pin-row nbp-pin-heads", role: "row" });
  const rows = element("div", { class: "nbp-pin-rows", role: "rowgroup" });
  const table = element("div", { role: "table", "aria-label": "Values at the pinned steps" }, heads, rows);
  const more = element("span", { class: "nbp-soft", role: "status" });
  const batches = element("span", { class: "nbp-pin-batches" });
  const foot = element("div", { class: "nbp-pin-foot" }, more, batches, clear);
  const el = element("section", { class: "nbp-pins", "aria-label": "Pinned steps", hidden: "" }, table, foot);
  /** @type {number[]} */
  let before = []; // the pins before the last click, which a double-click gives back
  let known = "";
  let words = ""; // on how they came to be pinned
  /** @type {ReturnType<typeof rowOf>[]} */
  let drawn = [];

  clear.addEventListener("click", () => pin([]), { signal });
  state.on("pins", show);
  state.on("emphasis", dim);

  /**
   * @param {number[]} steps
   * @param {string} [about]
   */
  function pin(steps, about = "") {
    words = about;
    state.pins = steps;
    state.emit("pins");
  }

  /**
   * The step under a pixel is pinned, or one that is pinned there is let go.
   * @param {number} x
   * @param {boolean} isSecond of a double-click
   */
  function click(x, isSecond) {
    const now = painted();
    if (!now || x < now.box.left || x > now.box.right) return;
    if (isSecond) return void pin(before);
    before = state.pins;
    const at = state.pins.findIndex((step) => Math.abs(now.axis.place(now.mapping.x(step)) - x) <= NEAR_PX);
    const [step, others] = [now.mapping.step(now.axis.value(x)), state.pins.slice(0, 1)];
    pin(at >= 0 ? state.pins.filter((_, place) => place !== at) : [...others, Math.round(step)]);
    return undefined;
  }

  function dim() {
    for (const row of drawn) bringOut(row, state, row.series);
  }

  /** What is drawn is told again after each paint: values come while it trains. */
  function show() {
    const now = painted();
    setHidden(el, !(state.pins.length || words) || !now);
    setHidden(table, !state.pins.length);
    if (el.hidden || !now) return;
    const all = now.charts.flatMap((chart) => chart.prepared.filter((one) => !one.left));
    const shown = all.slice(0, MOST_ROWS).map((series) => ({
      series,
      values: state.pins.map((step) => valueAt(series, now, step, state.lines?.x0 ?? 0)),
    }));
    const told = shown.map(({ series, values }) => [series.module, series.quantity, values]);
    const key = JSON.stringify([state.pins, words, told]);
    if (key === known) return;
    known = key;
    setChildren(heads, headsOf(state.pins));
    const steps = state.pins.join(" ");
    // Buttons stay under the pointer while only values change.
    if (batches.dataset.steps !== steps) setChildren(batches, state.pins.map(batchButton));
    batches.dataset.steps = steps;
    const ground = rgbOf(theme.read().ground);
    drawn = shown.map(({ series, values }) => rowOf(series, values, ground));
    rows.replaceChildren(...drawn);
    const rest = all.length - shown.length;
    const about = words || (state.pins.length < 2 && ALONE);
    setText(more, [about, rest > 0 && `${grouped(rest)} more series`].filter(Boolean).join(" "));
  }

  /** @param {number} step */
  function batchButton(step) {
    const button = element("button", { type: "button", class: "nbp-link", "data-action": "batch", "data-step": step });
    button.textContent = `batch of step ${grouped(step)}`;
    button.title = "Show what the model was called with at this step, or how to get it";
    button.addEventListener("click", () => {
      state.batch = { step, anchor: button };
      state.emit("batch");
    });
    return button;
  }

  /**
   * @param {PreparedSeries} series
   * @param {PinnedValue[]} values
   * @param {number[]} ground
   */
  function rowOf({ module, quantity, colour }, values, ground) {
    const units = unitsOf(state.model, quantity);
    const swatch = element("i", { style: `background: ${seriesColour(colour, ground)}` });
    const series = seriesName(module, quantity);
    const name = element("span", { role: "rowheader", class: "nbp-pin-name", title: series }, swatch, series);
    const told = values.map((one, at) => {
      if (!one) return cell("no value");
      const elsewhere = one.step === state.pins[at] ? "" : ` at ${grouped(one.step)}`;
      return cell(exact(one.value, units) + elsewhere);
    });
    const [first, second] = values;
    if (first && second) {
      told.push(cell(exact(second.value - first.value, units)), cell(ratioText(first.value, second.value)));
    }
    const row = element("div", { class: "nbp-pin-row", role: "row" }, name, ...told);
    row.addEventListener("pointerenter", () => emphasize(state, { module, quantity }));
    row.addEventListener("pointerleave", () => emphasize(state, null));
    return Object.assign(row, { series: { module, quantity } });
  }

  return {
    el,
    show,
    click,
    /** The step under the cursor. */
    here() {
      if (!state.cursor) return;
      const { step } = state.cursor;
      pin(state.pins.includes(step) ? state.pins.filter((one) => one !== step) : [...state.pins.slice(0, 1), step]);
    },
    pin,
    clear: () => (state.pins.length > 0 || words !== "") && pin([]),
  };
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number[]} pins
 * @param {Pick<PaintedLines, "axis" | "box" | "mapping">} painted
 * @param {Colours} colours
 */
export function paintPins(context, pins, { axis, box, mapping }, colours) {
  context.save();
  const places = pins.map((step) => Math.round(axis.place(mapping.x(step))) + 0.5);
  const isNear = Math.abs(places[0] - places[places.length - 1]) < FLAG_PX;
  places.forEach((x, at) => {
    if (x < box.left || x > box.right) return;
    context.strokeStyle = context.fillStyle = colours.brand;
    context.lineWidth = 1.2;
    context.beginPath();
    context.moveTo(x, box.top);
    context.lineTo(x, box.bottom);
    context.stroke();
    const top = box.top + (isNear ? at * FLAG_PX : 0); // one below the other, not over it
    context.fillRect(x - FLAG_PX / 2, top, FLAG_PX, FLAG_PX);
    context.fillStyle = colours.ground;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(LETTERS[at], x, top + FLAG_PX / 2 + 0.5);
  });
  context.restore();
}

/**
 * The finite value of a series at a step, or that of the nearest step that is drawn.
 * @param {PreparedSeries} series
 * @param {Pick<PaintedLines, "mapping">} painted
 * @param {number} step
 * @param {number} x0
 * @returns {PinnedValue}
 */
function valueAt({ x, y, n }, { mapping }, step, x0) {
  let best = -1;
  const away = (/** @type {number} */ k) => Math.abs(mapping.step(x[k] + x0) - step);
  for (let k = 0; k < n; k++) {
    if (Number.isFinite(y[k]) && (best < 0 || away(k) < away(best))) best = k;
  }
  return best < 0 ? null : { value: y[best], step: Math.round(mapping.step(x[best] + x0)) };
}

/** @param {number[]} pins */
function headsOf(pins) {
  const texts = pins.map((step, at) => `${LETTERS[at]}: step ${grouped(step)}`);
  if (pins.length > 1) texts.push(`B − A: ${grouped(pins[1] - pins[0])} steps`, "B / A");
  const nodes = texts.map((text) => element("span", { role: "columnheader" }, text));
  return [element("span", { role: "columnheader" }, "pinned"), ...nodes];
}

/** @param {string} text */
function cell(text) {
  return element("span", { role: "cell" }, text);
}

/**
 * @param {number} first
 * @param {number} second
 */
function ratioText(first, second) {
  return first ? significant(second / first, 3) : "";
}
