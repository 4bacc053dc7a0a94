/** Choose the rows of the heat map: all, those of what is marked, or folded as the tree is. */

import { createContentOf } from "../dialogs/content.js";
import { element, setAttribute, setHidden, setText } from "../dom.js";
import { grouped, modulesText } from "../format.js";

const MANY_ROWS = 2; // fewer are nothing to choose from

/** @param {Pick<PanelParts, "state" | "selection" | "dialogs" | "signal">} parts */
export function createHeatRows({ state, selection, dialogs, signal }) {
  const button = element("button", {
    class: "nbp-option",
    type: "button",
    "data-role": "rows",
    "aria-haspopup": "dialog",
    "aria-expanded": "false",
    title: "Choose the rows of the heat map",
  });
  const dialog = createContentOf({ dialogs, anchor: button, label: "Rows of the heat map", create: createContent });

  button.addEventListener("click", dialog.open, { signal });
  for (const topic of ["selection", "marked", "status", "folded"]) state.on(topic, refresh);

  function refresh() {
    const { rows, folds, home } = state.selection;
    const some = (state.status.recorded[home]?.length ?? 0) >= MANY_ROWS;
    setHidden(button, Boolean(state.parts.saved) || (!some && !rows.length && !folds.length));
    setText(button, wordOf(rows, folds));
    setAttribute(button, "data-rows", rows.length + folds.length);
    dialog.shown?.describe();
  }

  function createContent() {
    const choices = [
      { value: "all", text: "all rows", patch: () => ({ rows: [], folds: [] }) },
      { value: "marked", text: "", patch: () => ({ rows: [...state.marked], folds: [] }) },
      {
        value: "tree",
        text: "as the tree is folded: one row for each folded module",
        patch: () => ({ rows: [], folds: [...state.folded] }),
      },
    ].map(({ value, text, patch }) => {
      const radio = element("input", { type: "radio", name: "nbp-heat-rows", value });
      const words = element("span", {}, text);
      radio.addEventListener("change", () => selection.change(patch()), { signal });
      return { value, radio, words, el: element("label", {}, radio, words) };
    });
    const note = element("p", { class: "nbp-soft" });
    const el = element("div", { class: "nbp-heat-rows" }, ...choices.map((one) => one.el), note);

    function describe() {
      const { rows, folds } = state.selection;
      const chosen = rows.length ? "marked" : folds.length ? "tree" : "all";
      const n = state.marked.size;
      /** @type {Record<string, boolean>} */
      const able = { all: true, marked: n > 0 || rows.length > 0, tree: state.folded.size > 0 || folds.length > 0 };
      for (const { value, radio, words } of choices) {
        radio.checked = value === chosen;
        radio.disabled = !able[value];
        if (value === "marked") setText(words, markedText(n, rows));
      }
      setText(note, able.tree ? "" : "Fold a module in the tree, and it can be one row here.");
      setHidden(note, able.tree);
    }

    describe();
    return { el, describe };
  }

  /** A fold that is changed in the tree changes here, too. */
  state.on("folded", () => {
    if (state.selection.folds.length) selection.change({ folds: [...state.folded] });
  });

  refresh();
  return { el: button };
}

/**
 * @param {string[]} rows
 * @param {string[]} folds
 */
function wordOf(rows, folds) {
  if (rows.length) return rows.length === 1 ? `rows: ${rows[0]}` : `rows: ${grouped(rows.length)} marked`;
  return folds.length ? "rows: folded" : "rows";
}

/**
 * @param {number} n
 * @param {string[]} rows
 */
function markedText(n, rows) {
  const count = modulesText(n || rows.length);
  return n || rows.length ? `${count} marked, and those below them` : "what is marked in the tree";
}
