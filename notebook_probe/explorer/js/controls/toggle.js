/** Buttons that are on or off. */

import { element } from "../dom.js";

/** A button that is on or off; `aria-pressed` says which. */
export function toggleButton(text, title, role) {
  const attributes = {
    class: "nbp-option",
    type: "button",
    title,
    "data-role": role,
    "aria-pressed": "false",
  };
  return element("button", attributes, text);
}
