/** Consequences of a cause: their number, and a button that lists them below the cause. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { isSevere } from "./causes.js";
import { createMark, setSeverity } from "./mark.js";
import { consequencesText } from "./words.js";

/**
 * `changed()` is called when it was opened or closed by hand.
 * @param {() => void} changed
 * @param {AbortSignal} signal
 */
export function createFold(changed, signal) {
  const chevron = element("i", { class: "nbp-chevron", "aria-hidden": "true" });
  const mark = createMark("severe");
  const words = element("span");
  const el = element(
    "button",
    { class: "nbp-link nbp-consequences", type: "button", "aria-expanded": "false", hidden: "" },
    chevron,
    words,
    mark,
  );
  const isOpen = () => el.getAttribute("aria-expanded") === "true";
  /** @type {(wanted: boolean) => boolean} */
  const open = (wanted) => {
    if (el.hidden || wanted === isOpen()) return false;
    setAttribute(el, "aria-expanded", wanted);
    changed();
    return true;
  };
  el.addEventListener("click", () => open(!isOpen()), { signal });

  return {
    el,
    isOpen,
    /** Whether that has changed anything. */
    open,
    /**
     * A mark stands there only where something worse than the cause is folded away.
     * @param {Pick<ListedFinding, "severity" | "below">} finding
     */
    describe({ severity, below }) {
      setHidden(el, !below.length);
      setText(words, consequencesText(below.length));
      const n = below.filter(isSevere).length;
      setHidden(mark, !n || severity === "severe");
      setSeverity(mark, "severe");
    },
  };
}
