/** Saved views: a button that opens their list, where one is shown, saved or removed. */

import { element, listener, setAttribute, setHidden, setText } from "../dom.js";

const NOTHING = "Quantity, lines and scales under a name: for this run, and for the others in its folder.";

/** @param {Pick<PanelParts, "state" | "selection" | "link" | "dialogs" | "signal">} parts */
export function createSavedViews({ state, selection, link, dialogs, signal }) {
  const el = element(
    "button",
    {
      class: "nbp-view-word",
      type: "button",
      "data-action": "saved-views",
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
      title: "Show or save a view: quantity, lines and scales",
    },
    "views",
  );
  const list = element("div", { class: "nbp-saved-views", role: "list", "aria-label": "Saved views" });
  const about = element("div", { class: "nbp-hint" });
  const text = { type: "text", placeholder: "Name", maxlength: "60", "aria-label": "Name of the view" };
  const name = element("input", text);
  const save = element("button", { type: "button", class: "nbp-main", "data-action": "save-view" }, "Save");
  const form = element("div", { class: "nbp-form nbp-save-view" }, name, save);
  const problem = element("div", { class: "nbp-bad", role: "alert", hidden: "" });
  const content = element("div", { class: "nbp-view-options" }, list, about, form, problem);
  let shown = "";

  const listen = listener(signal);
  listen(el, "click", () => dialogs.open({ anchor: el, label: "Saved views", content }));
  listen(save, "click", keep);
  listen(name, "keydown", (event) => {
    if (event.key === "Enter") keep();
  });
  listen(list, "click", (event) => {
    const button = event.target.closest("[data-view]");
    if (button) act(button.dataset.act ?? "", button.dataset.view ?? "");
  });
  for (const topic of ["saved_views", "saved", "selection"]) state.on(topic, refresh);

  function keep() {
    const wanted = name.value.trim();
    if (!wanted) return name.focus();
    link.send("edit_view", { act: "save", name: wanted });
    name.value = "";
  }

  /**
   * @param {string} what
   * @param {string} view
   */
  function act(what, view) {
    if (what === "remove") return void link.send("edit_view", { act: "remove", name: view });
    const row = state.parts.saved_views.rows.find((one) => one.name === view);
    if (!row) return undefined;
    selection.change({ ...row.shows, window: null });
    link.send("edit_view", { act: "show", name: view });
    return undefined;
  }

  function refresh() {
    const { rows, file, problem: why } = state.parts.saved_views;
    setHidden(el, Boolean(state.parts.saved));
    setHidden(problem, !why);
    setText(problem, why);
    setText(about, rows.length ? `In ${file}` : NOTHING);
    const names = JSON.stringify(rows.map((row) => row.name));
    if (names !== shown) {
      shown = names;
      list.replaceChildren(...rows.map((row) => viewLine(row.name)));
    }
    for (const [place, node] of [...list.children].entries()) {
      setAttribute(node, "data-on", isShown(rows[place].shows, state.selection));
    }
  }

  refresh();
  return { el };
}

/** @param {string} view */
function viewLine(view) {
  const show = element(
    "button",
    { type: "button", class: "nbp-option nbp-cut", "data-act": "show", "data-view": view, title: `Show ${view}` },
    view,
  );
  const remove = element(
    "button",
    {
      type: "button",
      class: "nbp-remove",
      "data-act": "remove",
      "data-view": view,
      title: `Remove ${view}`,
      "aria-label": `Remove the view ${view}`,
    },
    "✕",
  );
  return element("div", { class: "nbp-saved-view", role: "listitem" }, show, remove);
}

/**
 * Whether all that a view says is what is looked at.
 * @param {Partial<PanelSelection>} view
 * @param {PanelSelection} selection
 */
function isShown(view, selection) {
  const names = /** @type {Array<keyof PanelSelection>} */ (Object.keys(view));
  return names.every((one) => JSON.stringify(view[one]) === JSON.stringify(selection[one]));
}
