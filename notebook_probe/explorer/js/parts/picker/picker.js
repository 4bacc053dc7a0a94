/** The quantity of the attach box: a button that opens the list of all quantities above it. */

import { createContentOf } from "../../dialogs/content.js";
import { element, listener, setAttribute, setText } from "../../dom.js";
import { createPickerContent } from "./content.js";

/**
 * @typedef {Pick<PanelParts, "state" | "dialogs" | "signal"> & {
 *   chosen: () => void,
 *   preset: (name: string) => void,
 * }} PickerParts
 */

/**
 * `chosen(name)` is called with a quantity, `preset(name)` with a preset, when one is picked.
 * @param {PickerParts} parts
 */
export function createPicker({ state, dialogs, chosen, preset, signal }) {
  const name = element("span", { class: "nbp-cut" });
  const button = element(
    "button",
    {
      class: "nbp-pick-button",
      type: "button",
      "data-role": "quantity",
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
    },
    name,
    element("i", { class: "nbp-chevron", "aria-hidden": "true" }),
  );
  let value = "";
  const dialog = createContentOf({
    dialogs,
    anchor: button,
    label: "Choose a quantity",
    create: () => createPickerContent({ state, value, take, signal }),
  });

  const listen = listener(signal);
  listen(button, "click", () => dialog.open()?.refresh());
  for (const topic of ["status", "model", "marked", "probes"]) state.on(topic, () => dialog.shown?.refresh());

  /** @param {string} to */
  function setValue(to) {
    value = to;
    setText(name, to);
    setAttribute(button, "data-value", to);
    setAttribute(button, "aria-label", `Quantity: ${to}`);
    setAttribute(button, "title", `${to}: choose another quantity (q)`);
  }

  /** @type {TakePicked} */
  function take({ quantity, preset: name }) {
    dialogs.close();
    button.focus();
    if (name) return preset(name);
    setValue(quantity);
    chosen();
  }

  return {
    el: button,
    get value() {
      return value;
    },
    set value(to) {
      setValue(to);
    },
    open: () => button.click(),
  };
}
