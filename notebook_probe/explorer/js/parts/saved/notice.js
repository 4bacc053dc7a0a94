/** The line below the bar of a panel without a kernel: what works, and how to open the record. */

import { copyText, element, setAttribute, setHidden, setText } from "../../dom.js";
import { bytes } from "../../format.js";

/** @param {Pick<PanelParts, "root" | "state" | "signal">} parts */
export function createSavedNotice({ root, state, signal }) {
  const code = element("code");
  const copy = element("button", { type: "button", "data-action": "copy-open" }, "Copy");
  const missing = element("div", { class: "nbp-soft nbp-left-out" });
  const damaged = element("div", { class: "nbp-bad nbp-unreadable" });
  const words = element("span", {}, "No kernel: hovering, zooming and selecting still work.");
  const how = element("span", { class: "nbp-open" }, "The full record: ", code);
  const el = element("div", { class: "nbp-saved-line", role: "note", hidden: "" }, words, how, copy, missing, damaged);
  copy.addEventListener("click", () => copyText(code, copy), { signal });
  state.on("saved", () => {
    if (!state.parts.saved) return;
    const { place, open, left_out: names, unreadable, most } = state.parts.saved;
    setAttribute(root, "data-saved", place);
    setHidden(el, false);
    setText(code, open);
    setText(missing, names.length ? `Left out, to stay below ${bytes(most)}: ${names.join(", ")}.` : "");
    setHidden(missing, !names.length);
    setText(damaged, unreadable.length ? `Damaged in the record, and not shown: ${unreadable.join("; ")}.` : "");
    setHidden(damaged, !unreadable.length);
  });
  return { el };
}
