/** The views that users registered, below the panel's own plots: one section each. */

import { element, setHidden } from "../dom.js";
import { createView } from "./view.js";

/** @param {Pick<PanelParts, "state" | "link" | "signal">} parts */
export function createViews({ state, link, signal }) {
  const el = element("div", { class: "nbp-own-views", hidden: "" });
  const views = new Map(); // by name
  const ofMessage = (receive) => () => {
    const view = views.get(state.viewMessage.view);
    if (view) receive(view, state.viewMessage);
  };
  state.on("views", list);
  state.on("esm", ofMessage((view, message) => view.bring(message.text)));
  state.on("drawn", ofMessage((view, message) => view.draw(message)));

  function list() {
    for (const row of state.views) {
      if (!views.has(row.name)) {
        const view = createView({ name: row.name, link, folded: count, signal });
        views.set(row.name, view);
        el.append(view.el);
      }
      views.get(row.name).describe(row);
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
