/** The history between the rows and their step axis: the line of the run, what was left of it, and its checkpoints. */

import { element, setAttribute, setChildren, setHidden, setText } from "../../dom.js";
import { bytes, grouped } from "../../format.js";
import { createBack } from "./back.js";

/** @typedef {(step: number) => number} PlaceOfStep */
/** @typedef {CheckpointRow & { left?: boolean }} HistoryMark */
/**
 * @typedef {Pick<PanelParts, "root" | "state" | "link" | "dialogs" | "signal"> & {
 *   canvas: HTMLCanvasElement,
 * }} HistoryParts
 */

/** @type {Record<string, number>} */
const NEXT = { ArrowRight: 1, ArrowLeft: -1 };
const ONE_LINE = 20; // pixels
const DOWN = 20; // pixels from the line that was left to the branch

/** @param {HistoryParts} parts */
export function createHistory({ root, state, link, dialogs, canvas, signal }) {
  const marks = element("span", { class: "nbp-history-marks", role: "group", "aria-label": "Checkpoints" });
  const name = element("span", { class: "nbp-history-name nbp-soft" }, "history");
  const count = element("span", { class: "nbp-history-count nbp-soft" });
  const now = element("span", { class: "nbp-history-count nbp-history-now" });
  const old = element("i", { class: "nbp-history-line nbp-left-line", "aria-hidden": "true" });
  const line = element("i", { class: "nbp-history-line", "aria-hidden": "true" });
  const turn = element("i", { class: "nbp-history-turn", "aria-hidden": "true" });
  const branch = element("i", { class: "nbp-history-line nbp-branch-line", "aria-hidden": "true" });
  const drawn = [old, line, turn, branch];
  const el = element("div", { class: "nbp-history", hidden: "" }, name, ...drawn, marks, count, now);
  let known = "";
  /** @type {ReturnType<typeof createBack> | null} */
  let shown = null; // the open popover

  for (const topic of ["history", "axis", "painted", "selection", "status", "tickets"]) state.on(topic, refresh);
  marks.addEventListener("keydown", pressed, { signal });
  el.addEventListener("pointerdown", grabbed, { signal });
  el.addEventListener("pointermove", dragged, { signal });
  el.addEventListener("pointerup", released, { signal });

  function refresh() {
    shown?.describe();
    const { checkpoints, left, fork } = state.parts.history;
    setHidden(el, !checkpoints.length && !left);
    takeRoom(el.hidden ? 0 : left ? ONE_LINE + DOWN : ONE_LINE);
    if (el.hidden || !canvas.dataset.box || !canvas.dataset.axis) return;
    const key = JSON.stringify([state.parts.history, canvas.dataset.box, canvas.dataset.axis, state.status.step]);
    if (key === known) return;
    known = key;
    const [from, , to] = JSON.parse(canvas.dataset.box);
    const [low, high] = JSON.parse(canvas.dataset.axis);
    /** @type {PlaceOfStep} */
    const x = (step) => Math.min(to, Math.max(from, from + ((to - from) * (step - low)) / (high - low)));
    name.style.width = `${from - 8}px`;
    placeLines(x, from, left, fork ?? 0);
    /** @type {(one: HistoryMark) => boolean} */
    const seen = ({ step }) => step >= low && step <= high;
    showMarks(
      [...checkpoints, ...(left?.checkpoints ?? []).map((one) => ({ ...one, left: true }))].filter(seen),
      x,
    );
    if (shown) dialogs.follow();
    sayWhere(to, checkpoints, left, fork ?? 0);
  }

  /**
   * The plots above leave so much free for it.
   * @param {number} pixels
   */
  function takeRoom(pixels) {
    if (pixels === state.strip) return;
    state.strip = pixels;
    root.style.setProperty("--nbp-strip", `${pixels}px`);
    state.emit("strip");
  }

  /**
   * @param {PlaceOfStep} x
   * @param {number} from
   * @param {LeftLine | null} left
   * @param {number} fork
   */
  function placeLines(x, from, left, fork) {
    const end = x(state.status.step);
    stretch(line, from, left ? x(fork) : end);
    for (const node of [old, turn, branch]) setHidden(node, !left);
    if (!left) return;
    stretch(old, x(fork), x(left.to));
    stretch(turn, x(fork), x(fork) + DOWN / 2);
    stretch(branch, x(fork) + DOWN / 2, Math.max(end, x(fork) + DOWN / 2));
  }

  /**
   * @param {number} to
   * @param {CheckpointRow[]} checkpoints
   * @param {LeftLine | null} left
   * @param {number} fork
   */
  function sayWhere(to, checkpoints, left, fork) {
    const n = checkpoints.length === 1 ? "1 checkpoint" : `${grouped(checkpoints.length)} checkpoints`;
    setText(count, left ? `before, to step ${grouped(left.to)}` : n);
    setText(now, left ? `now, from step ${grouped(fork)}` : "");
    for (const node of [count, now]) {
      node.style.left = `${to + 10}px`;
      setHidden(node, node.textContent === "");
      setHidden(node, node.offsetWidth > el.clientWidth - to - 12);
    }
  }

  function markNodes() {
    return /** @type {HTMLButtonElement[]} */ ([...marks.children]);
  }

  /**
   * Those that stay keep their nodes, and the focus with them.
   * @param {HistoryMark[]} checkpoints
   * @param {PlaceOfStep} x
   */
  function showMarks(checkpoints, x) {
    const there = new Map(markNodes().map((node) => [node.dataset.key, node]));
    const { fork } = state.parts.history;
    const nodes = checkpoints.map((one, k) => {
      const key = `${one.step}${one.left ? " before" : ""}`;
      const node = there.get(key) ?? createMark(key, one.step);
      node.style.left = `${x(one.step)}px`;
      node.classList.toggle("nbp-gone", one.gone);
      node.classList.toggle("nbp-left-mark", Boolean(one.left));
      node.classList.toggle("nbp-branch-mark", !one.left && fork !== null && one.step > fork);
      node.disabled = Boolean(one.left);
      node.tabIndex = k === checkpoints.length - 1 ? 0 : -1;
      setAttribute(node, "title", titleOf(one));
      setAttribute(node, "aria-label", titleOf(one));
      return node;
    });
    setChildren(marks, nodes);
  }

  /**
   * @param {string} key
   * @param {number} step
   */
  function createMark(key, step) {
    const node = element("button", {
      type: "button",
      class: "nbp-diamond",
      "data-key": key,
      "data-step": step,
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
    });
    node.addEventListener("click", () => open(node, step), { signal });
    return node;
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const way = NEXT[event.key];
    if (!way) return;
    event.preventDefault();
    event.stopPropagation();
    const nodes = markNodes().filter((node) => !node.disabled);
    nodes[nodes.findIndex((node) => node.matches(":focus")) + way]?.focus();
  }

  /**
   * Dragged along the line, the cursor goes from checkpoint to checkpoint; let go, it opens one.
   * @param {PointerEvent} event
   */
  function grabbed(event) {
    if (event.button !== 0 || event.target.closest("button")) return;
    event.preventDefault(); // no text is selected
    el.setPointerCapture(event.pointerId);
    dragged(event);
  }

  /** @param {PointerEvent} event */
  function dragged(event) {
    if (!el.hasPointerCapture(event.pointerId)) return;
    const node = nearestMark(event.clientX);
    if (!node) return;
    node.focus();
    state.cursor = { step: Number(node.dataset.step), row: null, from: "history" };
    state.emit("cursor");
  }

  /** @param {PointerEvent} event */
  function released(event) {
    if (!el.hasPointerCapture(event.pointerId)) return;
    el.releasePointerCapture(event.pointerId);
    nearestMark(event.clientX)?.click();
  }

  /** @param {number} x */
  function nearestMark(x) {
    /** @type {(node: HTMLElement) => number} */
    const away = (node) => Math.abs(node.getBoundingClientRect().x + node.offsetWidth / 2 - x);
    const nodes = markNodes().filter((node) => !node.disabled);
    return nodes.sort((one, other) => away(one) - away(other))[0];
  }

  /**
   * @param {HTMLElement} anchor
   * @param {number} step
   */
  function open(anchor, step) {
    const one = state.parts.history.checkpoints.find((row) => row.step === step);
    if (!one) return;
    state.cursor = { step, row: null, from: "history" };
    state.emit("cursor");
    const back = createBack(one, { state, link, dialogs });
    const label = `Back to step ${grouped(step)}`;
    dialogs.open({ anchor, label, content: back.el, closed: () => (shown = null) });
    shown = dialogs.isOpenAt(anchor) ? back : null;
  }

  return { el };
}

/**
 * @param {HTMLElement} node
 * @param {number} from
 * @param {number} to
 */
function stretch(node, from, to) {
  node.style.left = `${from}px`;
  node.style.width = `${Math.max(0, to - from)}px`;
}

/** @param {HistoryMark} one */
function titleOf({ step, gone, left, nbytes }) {
  if (left) return `checkpoint of step ${grouped(step)}, on the parent branch`;
  if (gone) return `the checkpoint of step ${grouped(step)} was removed`;
  return `checkpoint of step ${grouped(step)}, ${bytes(nbytes)}: back to it`;
}
