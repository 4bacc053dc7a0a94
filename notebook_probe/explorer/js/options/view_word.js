/** The options of a view in one word-button, which names what is not plain and opens them. */

import { element, setText } from "../dom.js";

/**
 * `lines` are the lines of its dialog, each with an `el`; `show(words)` says what is not plain.
 * @param {Pick<PanelParts, "dialogs" | "signal"> & {
 *   label: string,
 *   role: string,
 *   lines: Array<{ el: HTMLElement }>,
 * }} parts
 */
export function createViewWord({ dialogs, label, role, lines, signal }) {
  const words = element("span");
  const el = element(
    "button",
    {
      class: "nbp-view-word",
      type: "button",
      "data-action": role,
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
      title: label,
    },
    words,
    element("i", { class: "nbp-chevron", "aria-hidden": "true" }),
  );
  const content = element("div", { class: "nbp-view-options" }, ...lines.map((line) => line.el));
  el.addEventListener("click", () => dialogs.open({ anchor: el, label, content }), { signal });
  /** @param {Array<string | false>} said */
  const show = (said) => setText(words, said.filter(Boolean).join(" · ") || "plain");

  return { el, show };
}
