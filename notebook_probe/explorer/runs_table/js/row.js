/** One run as a row: its tick, name, alerts, the line of its loss, its values. */

import { createMarkButtons } from "./marking.js";
import { paintSparkline } from "../../js/controls/sparkline.js";
import { element, setAttribute } from "../../js/dom.js";
import { valueAt } from "../../js/maps.js";
import { dayAndTime, significant } from "../../js/format.js";

const LONG = 22; // characters from which on a cell may be cut
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/**
 * `tick(run)` and `open(run)` are asked for by its place in the table.
 * @param {TableRows} rows
 * @param {number} at
 */
export function createRow(rows, at) {
  const label = rows.labels[at];
  const tick = element("input", {
    type: "checkbox",
    tabindex: "-1",
    "aria-label": `Show ${label} in the Explorer`,
    title: "show it in the Explorer below (space)",
  });
  const badge = element("span", { class: "nbp-runs-badge", role: "img", hidden: "" });
  const name = element("span", { class: "nbp-runs-name", title: `${label}\n${rows.runs[at]}` }, label);
  const marks = createMarkButtons(label);
  const named = element("span", { class: "nbp-runs-named" }, tick, name, badge);
  if (rows.canMark) {
    tick.after(marks.star);
    name.after(marks.edit);
  }
  marks.show(rows.marksOf(at));
  const loss = element("td", { class: "nbp-runs-loss" });
  const el = element(
    "tr",
    { tabindex: "-1", "data-at": at, "data-run": rows.runs[at] },
    element("th", { scope: "row" }, named),
    loss,
    ...rows.shown.map((column) => cellOf(valueAt(rows.columns, column), at)),
  );

  return {
    el,
    badge,
    edit: marks.edit,
    /**
     * What is read of the record, once it is.
     * @param {LookedAt} found
     */
    look(found) {
      showLine(loss, found);
      badge.hidden = !found.n_alerts;
      badge.textContent = String(found.n_alerts);
      badge.classList.toggle("nbp-runs-severe", found.severe);
      badge.setAttribute("aria-label", alertWords(found));
    },
    /** @param {{ isOpen: boolean, isTicked: boolean }} told */
    mark({ isOpen, isTicked }) {
      tick.checked = isOpen || isTicked;
      setAttribute(el, "aria-selected", isOpen || isTicked);
      el.classList.toggle("nbp-runs-open", isOpen);
    },
  };
}

/** @param {Pick<LookedAt, "n_alerts" | "alerts">} found */
export function alertWords({ n_alerts: n, alerts }) {
  const more = n > alerts.length ? [`and ${n - alerts.length} before`] : [];
  return [`${n} ${n === 1 ? "alert" : "alerts"}`, ...alerts, ...more].join("\n");
}

/**
 * @param {TableColumn} column
 * @param {number} at
 */
function cellOf({ numeric, texts }, at) {
  const text = texts[at];
  const shown = MOMENT.test(text) ? dayAndTime(Date.parse(text)) : text;
  const cell = element("td", { class: numeric ? "nbp-runs-number" : "" }, shown);
  if (text.length >= LONG) cell.title = text;
  return cell;
}

/**
 * @param {HTMLElement} cell
 * @param {LookedAt} found
 */
function showLine(cell, { line, scalar, last, problem }) {
  if (problem) {
    cell.replaceChildren(element("span", { class: "nbp-bad", title: problem }, "cannot be read"));
    return;
  }
  if (!line.length) {
    cell.replaceChildren(element("span", { class: "nbp-soft", title: "no loss was logged" }, "–"));
    return;
  }
  const first = line.find((value) => value !== null) ?? null;
  const words = `${scalar}: ${significant(first)} to ${significant(last)}`;
  const canvas = element("canvas", { role: "img", "aria-label": words, title: words });
  cell.replaceChildren(canvas);
  paintSparkline(canvas, line, getComputedStyle(cell).color);
}
