/** Findings that may be intended, below the alerts: each with its step, its place and a sentence. */

import { element, setHidden } from "../../dom.js";
import { grouped } from "../../format.js";
import { findingWords } from "./words.js";

/** @param {PanelState} state */
export function createRemarkList(state) {
  const lines = element("ul");
  const el = element(
    "section",
    { class: "nbp-remarks", "aria-label": "Remarks", hidden: "" },
    element("h3", {}, "Remarks"),
    element("span", { class: "nbp-soft" }, "may be intended"),
    lines,
  );
  /** @type {RemarkRow[] | null} */
  let known = null;

  function fill() {
    if (state.remarks === known) return;
    known = state.remarks;
    lines.replaceChildren(...known.map(describe));
    setHidden(el, !known.length);
  }

  return { el, fill };
}

/** @param {RemarkRow} remark */
function describe(remark) {
  const { before, place, rest } = findingWords(remark);
  const text = element("span", {}, before, element("code", {}, place), rest);
  return element("li", {}, element("span", { class: "nbp-alert-step" }, grouped(remark.step)), text);
}
