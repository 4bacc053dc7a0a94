/** The views that users registered, below the panel's own plots: one section each. */

import { element, setHidden } from "../dom.js";
import { valueOr } from "../maps.js";
import { createView } from "./view.js";

/** @param {Pick<PanelParts, "state" | "link" | "signal">} parts */
export function createViews({ state, link, signal }) {
  const el = element("div", { class: "nbp-own-views", hidden: "" });
  /** @type {Map<string, ReturnType<typeof createView>>} */
  const views = new Map(); // by name
  state.on("views", list);
  for (const topic of ["esm", "drawn"]) state.on(topic, arrived);

  function arrived() {
    const message = state.viewMessage;
    const view = message && views.get(message.view);
    if (!view) return;
    if (message.type === "esm") view.bring(message.text);
    else view.draw(message);
  }

  function list() {
    for (const row of state.views) {
      const view = valueOr(views, row.name, () => createView({ name: row.name, link, folded: count, signal }));
      if (view.el.parentNode !== el) el.append(view.el);
      view.describe(row);
    }
    count();
  }

  /** Two and more stand in two columns, where there is room. */
  function count() {
    const shown = [...views.values()].filter((view) => !view.isFolded());
    el.classList.toggle("nbp-several", shown.length > 1);
    setHidden(el, !views.size);
  }

  return { el };
}
