/** The button that docks the panel next to the notebook and returns it; a line says where it is. */

import { element, isGreyed, setAttribute, setGreyed } from "../dom.js";

/** @type {Record<string, string>} */
const TITLES = {
  here: "Dock next to the notebook, where it stays visible (d)",
  pinned: "Return to its cell (d)",
  docked: "Return to its cell (d)",
};

/**
 * @param {Pick<PanelParts, "root" | "state" | "fail" | "signal"> & { dock: Dock }} parts
 */
export function createDockButton({ root, state, dock, fail, signal }) {
  const icon = element("i", { class: "nbp-dock-icon", "aria-hidden": "true" });
  const button = element("button", { class: "nbp-dock", type: "button", "data-action": "dock" }, icon);
  const back = element("button", { type: "button", "data-action": "undock" }, "Back into this cell");
  const away = element(
    "div",
    { class: "nbp-away", role: "status" },
    element("span", { class: "nbp-soft" }, "The panel is docked next to the notebook."),
    back,
  );
  root.append(away);
  for (const one of [button, back]) one.addEventListener("click", toggle, { signal });
  state.on("dock", refresh);

  async function toggle() {
    if (isGreyed(button)) return;
    try {
      await dock.toggle();
    } catch (error) {
      fail(error); // of a front end's own: said in the panel
    }
  }

  function refresh() {
    const place = dock.place();
    setAttribute(root, "data-place", place);
    setGreyed(button, dock.reason(), TITLES[place]);
    setAttribute(button, "aria-label", TITLES[place] ?? null);
    setAttribute(button, "aria-pressed", place === "docked" || place === "pinned");
  }

  refresh();
  return { el: button, toggle };
}
