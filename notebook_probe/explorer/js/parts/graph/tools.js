/** In a corner of the graph: a search, and how large it is drawn. */

import { element, listener, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";

/**
 * @typedef {{
 *   typed: (query: string) => { n: number, nothing: string },
 *   next: () => void,
 *   zoom: (factor: number) => void,
 *   fit: () => void,
 *   signal: AbortSignal,
 * }} GraphToolsParts
 */

/**
 * `typed(query)` returns `{ n, nothing }`, how many were found or why none; `next()`, `zoom(factor)`, `fit()`.
 * @param {GraphToolsParts} parts
 */
export function createTools({ typed, next, zoom, fit, signal }) {
  const search = element("input", {
    type: "search",
    class: "nbp-graph-search",
    placeholder: "Find in the graph",
    "aria-label": "Find in the graph by name, glob, class or operator",
    "data-role": "graph-search",
    spellcheck: "false",
  });
  const found = element("span", { class: "nbp-graph-found", role: "status", hidden: "" });
  const closer = button("−", "graph-smaller", "Smaller (−, or Ctrl and the wheel)");
  const larger = button("+", "graph-larger", "Larger (+, or Ctrl and the wheel)");
  const whole = button("⤢", "graph-fit", "As large as words can be read (0)");
  const el = element("div", { class: "nbp-graph-tools" }, found, search, closer, larger, whole);
  const listen = listener(signal);
  listen(closer, "click", () => zoom(1 / 1.4));
  listen(larger, "click", () => zoom(1.4));
  listen(whole, "click", fit);
  listen(search, "input", tell);
  listen(search, "keydown", (event) => {
    if (event.key === "Enter") next();
    else if (event.key === "Escape" && search.value) clear();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  function tell() {
    const { n, nothing } = typed(search.value.trim());
    setText(found, nothing || (n ? `${grouped(n)} found` : ""));
    setHidden(found, !found.textContent);
  }

  function clear() {
    search.value = "";
    tell();
  }

  return { el, search, clear };
}

/**
 * @param {string} text
 * @param {string} action
 * @param {string} label
 */
function button(text, action, label) {
  const attributes = { type: "button", "data-action": action, title: label, "aria-label": label };
  return element("button", attributes, text);
}
