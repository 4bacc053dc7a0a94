/** Below the charts: why a formula that is drawn has no value. */

import { element, setHidden } from "../dom.js";

/** @param {Pick<PanelParts, "state" | "selection">} parts */
export function createFormulaProblems({ state, selection }) {
  const el = element("div", { class: "nbp-formula-problems", role: "alert", hidden: "" });
  let known = "[]";
  for (const topic of ["lines", "selection"]) state.on(topic, show);

  function show() {
    const drawn = new Set(state.selection.series.map(([, quantity]) => quantity));
    const told = (state.lines?.series ?? []).filter(({ problem, quantity }) => problem && drawn.has(quantity));
    const key = JSON.stringify(told.map(({ quantity, problem }) => [quantity, problem]));
    if (key === known) return;
    known = key;
    setHidden(el, !told.length);
    el.replaceChildren(...told.map(lineOf));
  }

  /** @param {DrawnSeries} series */
  function lineOf({ module, quantity, problem = "" }) {
    const remove = element("button", { type: "button", class: "nbp-link", "data-action": "drop-formula" }, "remove");
    remove.addEventListener("click", () => selection.remove(module, quantity));
    const why = problem.startsWith(`'${quantity}'`) ? problem.slice(quantity.length + 4) : problem;
    return element("div", {}, element("code", {}, quantity), ` ${why} `, remove);
  }

  return { el };
}
