/** Pictures of all runs above their table: parallel coordinates and a scatter, brushed into the table. */

import { element, setAttribute, setHidden, setText } from "../../../js/dom.js";
import { valueAt } from "../../../js/maps.js";
import { axesOf, rangeText, resultAmong } from "./axes.js";
import { createBrush } from "./brush.js";
import { createGroups } from "./groups.js";
import { paintRuns } from "./paint.js";
import { parallelPlaces, scatterPlaces } from "./places.js";

const HEIGHT = 260;
const KEY_SHARE = 0.05; // of an axis, by which a key moves an end of its range
const KEYS_HOW = "↑ and ↓ move the lower end of the range, with Shift the upper one; Delete removes it";
/** @type {Record<string, number>} */
const KEYS = { ArrowUp: KEY_SHARE, ArrowDown: -KEY_SHARE };
const HOW = {
  parallel: "Drag along an axis to leave only those runs in the table; a click on a line opens its run",
  scatter: "Drag a rectangle to leave only those runs in the table; a click on a point opens its run",
};
const NO_AXES = "Choose two columns with numbers or few texts";

/**
 * `changed(change)` makes a change of which rows are wanted; `open(at)` opens a run; `keep()` is called
 * when another picture or other axes are chosen; `ask(by)` has the kernel group the rows in sight.
 * @param {{
 *   rows: TableRows,
 *   theme: Theme,
 *   changed: (change: () => void) => void,
 *   open: (at: number) => void,
 *   isOpen: (at: number) => boolean,
 *   keep: () => void,
 *   ask: (by: string) => void,
 *   signal: AbortSignal,
 * }} parts
 */
export function createRunPicture({ rows, theme, changed, open, isOpen, keep, ask, signal }) {
  const canvas = element("canvas", { class: "nbp-runs-canvas", role: "img" });
  const names = element("div", { class: "nbp-runs-axes" });
  const tip = element("div", { class: "nbp-runs-tip", hidden: "", "aria-hidden": "true" });
  const hint = element("span", { class: "nbp-soft" });
  const [across, up, colour] = ["x", "y", "color"].map((label) => choiceOf(label));
  const choices = element("div", { class: "nbp-runs-choices" }, across.el, up.el, colour.el, hint);
  const drawn = element("div", { class: "nbp-runs-drawn" }, canvas, names, tip);
  const groups = createGroups({ rows, theme, ask, choose: (by) => choose({ by }), leave, signal });
  const el = element("div", { class: "nbp-runs-picture", hidden: "" }, choices, drawn, groups.el);
  const buttons = /** @type {const} */ (["parallel", "scatter", "groups"]).map((kind) => {
    const data = { class: "nbp-runs-kind", "data-kind": kind, "aria-pressed": "false" };
    const button = element("button", { type: "button", ...data }, kind);
    button.addEventListener("click", () => choose({ kind: rows.picture.kind === kind ? "" : kind }), { signal });
    return button;
  });
  const named = { role: "group", "aria-label": "Picture of the runs" };
  const toggle = element("span", { class: "nbp-runs-kinds", ...named }, ...buttons);
  /** @type {RunPlaces | null} */
  let places = null;
  let pointedAt = -1;
  let frame = 0;

  for (const [choice, field] of /** @type {const} */ ([[across, "x"], [up, "y"], [colour, "colour"]])) {
    choice.select.addEventListener("change", () => choose({ [field]: choice.select.value }), { signal });
  }
  createBrush({
    canvas,
    places: () => places,
    range: setRanges,
    pointed,
    open,
    among: () => rows.order,
    signal,
  });
  names.addEventListener("keydown", pressed, { signal });
  const observer = new ResizeObserver(() => refresh());
  observer.observe(el);
  signal.addEventListener("abort", () => {
    observer.disconnect();
    cancelAnimationFrame(frame);
  });

  /** @param {Partial<PictureChoice>} patch */
  function choose(patch) {
    Object.assign(rows.picture, patch);
    keep();
    refresh();
  }

  /** @param {Map<string, ColumnRange | null>} changes */
  function setRanges(changes) {
    changed(() => {
      for (const [name, range] of changes) {
        if (range) rows.ranges.set(name, range);
        else rows.ranges.delete(name);
      }
      rows.arrange();
    });
  }

  /**
   * Leave the runs of one group in the table.
   * @param {string} column
   * @param {string} text
   */
  function leave(column, text) {
    const { keys, texts } = valueAt(rows.columns, column);
    const value = Number(keys[texts.indexOf(text)]) || 0; // where a numeric axis shows it
    setRanges(new Map([[column, { low: value, high: value, texts: [text] }]]));
  }

  /** Paint in the next frame: a drag moves more often. */
  function refresh() {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(paint);
  }

  function paint() {
    const { kind } = rows.picture;
    setHidden(el, !kind);
    for (const button of buttons) setAttribute(button, "aria-pressed", button.dataset.kind === kind);
    for (const node of [choices, drawn]) setHidden(node, kind === "groups");
    const width = drawn.clientWidth;
    places = null;
    groups.show(kind === "groups");
    if (!kind || kind === "groups" || !width) return;
    const axes = axesOf(rows);
    const result = resultAmong(axes, rows.picture.colour);
    const rest = axes.filter((axis) => axis !== result);
    const x = axes.find(({ name }) => name === rows.picture.x) ?? rest[0];
    const y = axes.find(({ name }) => name === rows.picture.y) ?? result;
    showChoices(axes, { x: x?.name, y: y?.name, colour: result?.name });
    setText(hint, axes.length < 2 ? NO_AXES : HOW[kind]);
    setHidden(drawn, axes.length < 2);
    if (axes.length < 2 || !x || !y || !result) return;
    const size = { width, height: HEIGHT };
    places = kind === "parallel" ? parallelPlaces(axes, rows, size) : scatterPlaces([x, y], rows, size);
    paintIn(places, size, result);
    showNames();
  }

  /**
   * @param {RunPlaces} there
   * @param {{ width: number, height: number }} size
   * @param {RunAxis} result whose values are the colors
   */
  function paintIn(there, size, result) {
    const { keys, texts } = valueAt(rows.columns, result.name);
    const coloured = Float64Array.from(rows.runs, (_, at) => result.at(keys[at] ?? null, texts[at] ?? ""));
    const brought = rows.runs.map((_, at) => at).filter((at) => at === pointedAt || isOpen(at));
    paintRuns(canvas, { places: there, size, rows, ranges: rows.ranges, coloured, brought, colours: theme.read() });
    const [n, all] = [rows.order.length, rows.runs.length];
    const names = there.axes.map(({ name }) => name).join(", ");
    setAttribute(canvas, "aria-label", `${there.kind} picture of ${n} of ${all} runs: ${names}`);
  }

  /** The names of the axes, each a stop of the keyboard that moves the ends of its range. */
  function showNames() {
    const held = names.contains(document.activeElement) ? document.activeElement?.getAttribute("data-column") : null;
    const { axes, xs, box } = /** @type {RunPlaces} */ (places);
    const nodes = axes.map((axis, k) => {
      const range = rows.ranges.get(axis.name);
      const label = `${axis.name}: ${range ? rangeText(range) : "all values"}`;
      const title = `${label}\n${KEYS_HOW}`;
      const [last, ...above] = axis.name.split(".").reverse();
      const node = element(
        "button",
        { type: "button", "data-column": axis.name, "aria-label": label, title },
        element("small", {}, above.reverse().join(".")),
        element("span", {}, last + (axis.isLog ? " (log)" : "")),
      );
      if (xs.length) node.style.left = `${xs[k]}px`;
      else Object.assign(node.style, k ? pixels(box[0], box[1]) : pixels(box[2], box[3] + 16));
      return node;
    });
    names.classList.toggle("nbp-runs-across", !xs.length);
    names.replaceChildren(...nodes);
    nodes.find((node) => node.dataset.column === held)?.focus();
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const axis = places?.axes.find(({ name }) => name === event.target.dataset.column);
    const by = KEYS[event.key];
    if (!axis || !(by || ["Delete", "Backspace"].includes(event.key))) return;
    event.preventDefault();
    event.stopPropagation();
    if (!by) return setRanges(new Map([[axis.name, null]]));
    const known = rows.ranges.get(axis.name);
    const [low, high] = known ? axis.sharesOf(known) : [0, 1];
    /** @param {number} share */
    const inside = (share) => Math.min(1, Math.max(0, share));
    const upper = [low, Math.max(low, inside(high + by))];
    const [from, to] = event.shiftKey ? upper : [Math.min(high, inside(low + by)), high];
    return setRanges(new Map([[axis.name, axis.rangeOf(from, to)]]));
  }

  /**
   * @param {RunAxis[]} axes
   * @param {{ x?: string, y?: string, colour?: string }} chosen
   */
  function showChoices(axes, chosen) {
    const isScatter = rows.picture.kind === "scatter";
    for (const one of [across, up]) setHidden(one.el, !isScatter);
    const wanted = axes.map((axis) => axis.name);
    const shown = /** @type {const} */ ([[across, chosen.x], [up, chosen.y], [colour, chosen.colour]]);
    for (const [choice, name] of shown) {
      const there = [...choice.select.options].map(({ value }) => value);
      if (there.join("\n") !== wanted.join("\n")) {
        choice.select.replaceChildren(...wanted.map((one) => element("option", { value: one }, one)));
      }
      choice.select.value = name ?? "";
    }
  }

  /**
   * @param {number} at
   * @param {{ x: number, y: number } | null} point
   */
  function pointed(at, point) {
    if (at !== pointedAt) {
      pointedAt = at;
      refresh();
    }
    setHidden(tip, at < 0 || !places);
    canvas.style.cursor = at < 0 ? "crosshair" : "pointer";
    if (at < 0 || !places || !point) return;
    const told = places.axes.map(({ name }) => `${name}: ${valueAt(rows.columns, name).texts[at] || "–"}`);
    setText(tip, [rows.labels[at], ...told].join("\n"));
    tip.style.left = `${Math.max(4, Math.min(point.x + 14, drawn.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(point.y + 12, HEIGHT - tip.offsetHeight - 4))}px`;
  }

  return { el, toggle, refresh, grouped: groups.told };
}

/** @param {string} label */
function choiceOf(label) {
  const select = element("select", { "aria-label": label });
  return { select, el: element("label", {}, `${label} `, select) };
}

/**
 * @param {number} left
 * @param {number} top
 */
function pixels(left, top) {
  return { left: `${left}px`, top: `${top}px` };
}
