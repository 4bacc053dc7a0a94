/** Undo and redo of changes of what is looked at. */

import { element, isGreyed, setGreyed } from "../dom.js";

/** @param {Pick<PanelParts, "state" | "selection" | "signal">} parts */
export function createUndoButtons({ state, selection, signal }) {
  const undo = button("↶", "undo", "Undo");
  const redo = button("↷", "redo", "Redo");
  undo.addEventListener("click", () => isGreyed(undo) || selection.undo(), { signal });
  redo.addEventListener("click", () => isGreyed(redo) || selection.redo(), { signal });
  state.on("selection", refresh);

  function refresh() {
    const words = selection.changes();
    setGreyed(undo, words.undo ? "" : "Nothing to undo in this view", `Undo: ${words.undo} (z)`);
    setGreyed(redo, words.redo ? "" : "Nothing to redo in this view", `Redo: ${words.redo} (Shift+Z)`);
  }

  refresh();
  return { el: element("span", { class: "nbp-undo" }, undo, redo) };
}

/**
 * @param {string} sign
 * @param {string} action
 * @param {string} label
 */
function button(sign, action, label) {
  const attributes = { type: "button", class: "nbp-view-word", "data-action": action, "aria-label": label };
  return element("button", attributes, sign);
}
