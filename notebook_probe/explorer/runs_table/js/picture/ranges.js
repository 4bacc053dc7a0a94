/** Ranges of columns as buttons below the bar: what each leaves, and a way to take it away. */

import { element, setHidden } from "../../../js/dom.js";
import { rangeText } from "./axes.js";

/**
 * `clear(name)` takes the range of a column away.
 * @param {{ rows: TableRows, clear: (name: string) => void, signal: AbortSignal }} parts
 */
export function createRanges({ rows, clear, signal }) {
  const el = element("div", { class: "nbp-runs-ranges", role: "group", "aria-label": "Ranges", hidden: "" });
  el.addEventListener("click", ({ target }) => clear(target.closest("button")?.dataset.column ?? ""), { signal });

  function refresh() {
    const held = el.contains(document.activeElement);
    setHidden(el, !rows.ranges.size);
    el.replaceChildren(...[...rows.ranges].map(([name, range]) => chipOf(name, rangeText(range))));
    if (held) el.querySelector("button")?.focus();
  }

  return { el, refresh };
}

/**
 * @param {string} name
 * @param {string} text
 */
function chipOf(name, text) {
  const cross = element("span", { "aria-hidden": "true" }, " ✕");
  const label = `Remove the range ${text} of ${name}`;
  const named = { "data-column": name, "aria-label": label, title: label };
  return element("button", { type: "button", ...named }, `${name} ${text}`, cross);
}
