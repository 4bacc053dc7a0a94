/** The mark of an alert: a filled triangle where it is severe, a hollow one for a warning. */

import { element, setAttribute } from "../../dom.js";

export function createMark(severity) {
  const mark = element("i", { class: "nbp-severity", role: "img" });
  setSeverity(mark, severity);
  return mark;
}

export function setSeverity(mark, severity) {
  setAttribute(mark, "data-severity", severity);
  setAttribute(mark, "aria-label", severity);
  setAttribute(mark, "title", severity);
}
