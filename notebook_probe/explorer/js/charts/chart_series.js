/** The series of one chart: those drawn in it, and a search for others, which come here from other charts, too. */

import { element, setText } from "../dom.js";
import { grouped } from "../format.js";
import { ROOT, seriesName } from "../names.js";
import { spaced } from "../options/formula_items.js";
import { recordedSeries } from "../options/recorded_series.js";
import { hasSeries } from "../state.js";
import { arrangedCharts, holding } from "./arranged.js";

const MOST_FOUND = 6;
const ABOUT = "A series comes here from another chart. = begins a formula, such as = 1 - accuracy.";

/** @param {Pick<PanelParts, "state" | "selection" | "signal"> & { chart: () => number }} parts */
export function createChartSeries({ state, selection, chart, signal }) {
  const drawn = element("div", { class: "nbp-chart-series", role: "list", "aria-label": "Series of this chart" });
  const field = element("input", {
    type: "search",
    placeholder: "Add: find a module or quantity",
    "aria-label": "Find a series for this chart",
    spellcheck: "false",
    "data-role": "chart-search",
  });
  const found = element("div", { class: "nbp-chart-found" });
  const more = element("div", { class: "nbp-hint" });
  const results = element("div", { class: "nbp-chart-results" }, found, more);
  const el = element("div", { class: "nbp-chart-lines" }, drawn, field, results);
  field.addEventListener("input", search, { signal });
  field.addEventListener(
    "keydown",
    (event) => {
      if (event.key === "Enter") found.querySelector("button")?.click();
    },
    { signal },
  );

  /** @returns {Array<[string, string]>} */
  function here() {
    return arrangedCharts(state)[chart()]?.series ?? [];
  }

  function show() {
    const rows = here().map(([module, quantity]) => {
      const name = seriesName(module, quantity);
      const remove = element("button", { type: "button", class: "nbp-remove", "aria-label": `Remove ${name}` }, "✕");
      remove.addEventListener("click", () => selection.remove(module, quantity));
      return element("div", { role: "listitem", title: name }, element("span", { class: "nbp-cut" }, name), remove);
    });
    const key = JSON.stringify(here());
    if (drawn.dataset.key !== key) drawn.replaceChildren(...rows);
    drawn.dataset.key = key;
    search();
  }

  function search() {
    const query = field.value.trim().toLowerCase();
    const typed = field.value.trim();
    /** @type {Array<[string, string]>} */
    const formula = typed.length > 1 && typed.startsWith("=") ? [[ROOT, spaced(typed)]] : [];
    const all = formula.length || !query ? formula : recordedSeries(state, query);
    const others = all.filter(([module, quantity]) => !here().some(([m, q]) => m === module && q === quantity));
    const key = JSON.stringify([query, others.slice(0, MOST_FOUND), state.selection.series]);
    if (found.dataset.key === key) return;
    found.dataset.key = key;
    found.replaceChildren(...others.slice(0, MOST_FOUND).map(([module, quantity]) => foundLine(module, quantity)));
    const rest = others.length - MOST_FOUND;
    const outcome = !others.length ? "Nothing found." : rest > 0 ? `${grouped(rest)} more: search on` : "";
    setText(more, query ? outcome : ABOUT);
  }

  /**
   * @param {string} module
   * @param {string} quantity
   */
  function foundLine(module, quantity) {
    const elsewhere = hasSeries(state.selection, module, quantity);
    const node = element(
      "button",
      { type: "button", class: "nbp-item", "data-module": module, "data-quantity": quantity },
      element("span", { class: "nbp-cut" }, seriesName(module, quantity)),
      element("span", { class: "nbp-note-soft" }, elsewhere ? "from another chart" : ""),
    );
    node.addEventListener("click", () => {
      selection.arrange(holding(arrangedCharts(state), chart(), [module, quantity]));
      field.focus();
    });
    return node;
  }

  return { el, show };
}
