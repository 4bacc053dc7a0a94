/** The mark of an alert: a filled triangle where it is severe, a hollow one for a warning. */

import { element, setAttribute } from "../../dom.js";

/** @param {AlertRow["severity"]} severity */
export function createMark(severity) {
  const mark = element("i", { class: "nbp-severity", role: "img" });
  setSeverity(mark, severity);
  return mark;
}

/**
 * @param {Element} mark
 * @param {AlertRow["severity"]} severity
 */
export function setSeverity(mark, severity) {
  setAttribute(mark, "data-severity", severity);
  setAttribute(mark, "aria-label", severity);
  setAttribute(mark, "title", severity);
}
