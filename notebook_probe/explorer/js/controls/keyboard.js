/** Keys: arrows move the cursor, + - 0 < > the steps, / searches, a attaches, letters open what is called so. */

import { heatFrame } from "../state.js";
import { stepRange } from "../plots/step_axis.js";
import { createStepWindow } from "../plots/step_window.js";
import { homeFrame, showsVectors } from "../state.js";

const [KEY_ZOOM, KEY_PAN] = [1.5, 0.25];

/**
 * @typedef {{
 *   tree: { search: HTMLElement, scroller: HTMLElement },
 *   attach: { attach(): void, choose(): void },
 *   attached: { el: HTMLElement, open(): void },
 *   bar: { pause(): void, step(): void },
 *   compare: { open(): void },
 *   breaks: { open(): void },
 *   alerts: { open(): void },
 *   looks: { look(): void, go(by: number): void },
 *   graph: { toggle(): void },
 *   dock: { toggle(): void },
 *   pins: { here(): void, clear(): void },
 * }} KeyboardParts
 */

/** @param {Pick<PanelParts, "root" | "state" | "selection" | "signal"> & KeyboardParts} parts */
export function createKeyboard({
  root,
  state,
  selection,
  tree,
  attach,
  attached,
  bar,
  compare,
  breaks,
  alerts,
  looks,
  graph,
  dock,
  pins,
  signal,
}) {
  root.addEventListener("keydown", pressed, { signal });
  const stepWindow = createStepWindow({ state, selection, stepAt: (step) => step });

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's and the notebook's own
    event.stopPropagation();
    if (event.defaultPrevented) return;
    if (takesText(event.target)) {
      if (event.key === "Escape") root.focus();
      return;
    }
    const action = actions[event.key];
    if (!action || (isButton(event.target) && [" ", "Enter"].includes(event.key))) return;
    event.preventDefault();
    action(event);
  }

  /** @type {Record<string, (event: KeyboardEvent) => unknown>} */
  const actions = {
    "/": () => openTree(tree.search),
    a: () => (state.marked.size ? attach.attach() : openTree(tree.scroller)),
    q: () => state.model.live && (root.classList.add("nbp-tree-open"), attach.choose()),
    t: () => state.model.live && (openTree(attached.el), attached.open()),
    l: looks.look,
    "[": () => looks.go(-1),
    "]": () => looks.go(1),
    d: dock.toggle,
    g: graph.toggle,
    " ": () => state.model.live && bar.pause(),
    ".": () => state.model.live && bar.step(),
    b: () => state.model.live && breaks.open(),
    ArrowLeft: (event) => move(event.shiftKey ? -10 : -1),
    ArrowRight: (event) => move(event.shiftKey ? 10 : 1),
    ArrowUp: () => climb(-1),
    ArrowDown: () => climb(1),
    Enter: drawRow,
    "+": () => zoom(1 / KEY_ZOOM),
    "=": () => zoom(1 / KEY_ZOOM), // the same key without Shift on many keyboards
    "-": () => zoom(KEY_ZOOM),
    0: stepWindow.reset,
    "<": () => pan(-KEY_PAN),
    ">": () => pan(KEY_PAN),
    z: selection.undo,
    Z: selection.redo,
    p: pins.here,
    n: () => alerts.open(),
    r: () => compare.open(),
    Escape: () => {
      state.pinned = null;
      pins.clear();
      point(null);
    },
  };

  /** @param {HTMLElement} node */
  function openTree(node) {
    root.classList.add("nbp-tree-open");
    node.focus();
  }

  /**
   * One column of what stands above the lines, or a hundredth of the steps on the screen.
   * @param {number} columns
   */
  function move(columns) {
    const range = stepRange(state);
    if (!range) return;
    const frame = homeFrame(state);
    const width = frame?.columns
      ? (frame.last_step + 1 - frame.first_step) / frame.columns
      : (range.high - range.low) / 100;
    const start = state.cursor?.step ?? Math.round((range.low + range.high) / 2);
    const step = start + (state.cursor ? columns * Math.max(1, Math.round(width)) : 0);
    const from = root.querySelector("canvas.nbp-lines:focus") ? "lines" : above();
    const clamped = Math.min(Math.max(step, range.low), range.high - 1);
    const { row, element } = { row: 0, element: 0, ...state.cursor };
    point({ step: Math.round(clamped), row: row ?? 0, element, from });
  }

  /**
   * At the cursor where there is one in sight.
   * @param {number} factor
   */
  function zoom(factor) {
    const range = stepRange(state);
    if (!range) return;
    const { low, high } = range;
    const step = state.cursor?.step ?? NaN;
    stepWindow.zoom(step >= low && step <= high ? step : (low + high) / 2, factor);
  }

  /** @param {number} share of the steps on the screen */
  function pan(share) {
    const range = stepRange(state);
    if (range) stepWindow.pan(range.low + share * (range.high - range.low), range.low);
  }

  /** @param {number} rows */
  function climb(rows) {
    const frame = homeFrame(state);
    if (!frame?.rows.length) return undefined;
    if (!state.cursor) return move(0);
    const row = Math.min(Math.max((state.cursor.row ?? 0) + rows, 0), frame.rows.length - 1);
    return point({ step: state.cursor.step, row, element: state.cursor.element ?? 0, from: above() });
  }

  const above = () => (showsVectors(state) ? "vectors" : "heat");

  function drawRow() {
    if (showsVectors(state)) return; // which element of the row: its own keys say
    const heat = heatFrame(state);
    const module = heat?.rows[state.cursor?.row ?? -1];
    if (heat && module !== undefined) selection.add(module, heat.quantity);
  }

  /** @param {Cursor | null} cursor */
  function point(cursor) {
    state.cursor = cursor;
    state.emit("cursor");
  }
}

/** @param {HTMLElement} node */
function takesText(node) {
  return node.matches("textarea, select, input, [contenteditable=true]");
}

/** @param {HTMLElement} node */
function isButton(node) {
  return node.matches("button, a");
}
