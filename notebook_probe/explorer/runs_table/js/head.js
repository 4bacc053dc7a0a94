/** The heads of the columns: a click sorts. */

import { element } from "../../js/dom.js";

/**
 * How wide a column is, in characters: as its texts, within reason.
 * @param {string[]} texts
 * @param {[number, number]} ends
 */
export function widthOf(texts, [least, most]) {
  let longest = least;
  for (const text of texts) if (text.length > longest) longest = text.length;
  return Math.min(longest, most);
}

/** @param {{ rows: TableRows, sort: (name: string) => void }} parts */
export function createHead({ rows, sort }) {
  const el = element("thead");

  function refresh() {
    const focused = el.querySelector("button:focus")?.dataset.column;
    const loss = element("th", { scope: "col", class: "nbp-runs-loss" }, element("span", {}, "loss"));
    const heads = rows.shown.map((name) => headOf(name, rows.columns.get(name)?.numeric ?? false));
    el.replaceChildren(element("tr", {}, headOf("run", false), loss, ...heads));
    for (const one of el.querySelectorAll("button")) if (one.dataset.column === focused) one.focus();
  }

  /**
   * @param {string} name
   * @param {boolean} numeric
   */
  function headOf(name, numeric) {
    const isSorted = rows.sorted.name === name;
    const mark = isSorted ? (rows.sorted.down ? " ▼" : " ▲") : "";
    const [last, ...above] = name.split(".").reverse();
    const button = element(
      "button",
      { type: "button", title: `sort by ${name}`, "data-column": name },
      element("small", {}, above.reverse().join(".")),
      element("span", {}, last + mark),
    );
    button.addEventListener("click", () => sort(name));
    const order = isSorted ? (rows.sorted.down ? "descending" : "ascending") : "none";
    const kind = numeric ? "nbp-runs-number" : "";
    return element("th", { scope: "col", "aria-sort": order, class: kind }, button);
  }

  return { el, refresh };
}
