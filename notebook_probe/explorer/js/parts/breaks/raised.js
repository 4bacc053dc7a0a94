/** Below the bar: the exception that has ended the loop or pauses it, its traceback on demand. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";

/** @param {Pick<PanelParts, "state" | "signal">} parts */
export function createRaised({ state, signal }) {
  const words = element("span", { class: "nbp-raised-words" });
  const more = element(
    "button",
    { class: "nbp-link", type: "button", "aria-expanded": "false", "data-action": "traceback" },
    "traceback",
  );
  const whole = element("pre", { class: "nbp-traceback", tabindex: "0", hidden: "" });
  const head = element("div", { class: "nbp-raised-head", role: "alert" }, words, more);
  const el = element("div", { class: "nbp-raised", hidden: "" }, head, whole);

  more.addEventListener("click", () => unfold(whole.hidden), { signal });
  state.on("breaks", refresh);

  /** @param {boolean} open */
  function unfold(open) {
    setHidden(whole, !open);
    setAttribute(more, "aria-expanded", open);
  }

  function refresh() {
    const { traceback } = state.parts.breaks;
    if (!traceback) unfold(false);
    setHidden(el, !traceback);
    setText(words, lastLine(traceback));
    setText(whole, traceback);
  }

  refresh();
  return { el };
}

/**
 * What Python says last: the error itself.
 * @param {string} traceback
 */
function lastLine(traceback) {
  return traceback.trimEnd().split("\n").at(-1) ?? "";
}
