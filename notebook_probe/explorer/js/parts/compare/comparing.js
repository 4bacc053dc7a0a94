/** Options of a comparison: contents of the heat map, alignment, lines or a group. */

import { element, setHidden, setText } from "../../dom.js";
import { ALIGNMENTS } from "./alignments.js";
import { createFollowedRuns } from "./followed_runs.js";
import { runName } from "./names.js";
import { refusedText } from "./partings.js";
import { createSegment } from "./segment.js";

/** @type {Array<["lines" | "group", string]>} */
const DRAWN = [
  ["lines", "lines"],
  ["group", "group"],
];

/** @param {Pick<PanelParts, "state" | "selection" | "link" | "signal">} parts */
export function createComparing({ state, selection, link, signal }) {
  const heat = createSegment({
    label: "Heat map",
    role: "ratio-to",
    choose: (value) => selection.change({ ratio_to: value }),
    signal,
  });
  const drawn = createSegment({
    label: "Drawn as",
    role: "grouped",
    choose: (value) => selection.change({ grouped: value === "group" }),
    signal,
  });
  const aligned = createSegment({
    label: "Aligned by",
    role: "aligned",
    /** @param {PanelSelection["aligned"]} value */
    choose: (value) => selection.change({ aligned: value }),
    signal,
  });
  /** @type {(text: string) => HTMLElement} */
  const word = (text) => element("span", { class: "nbp-soft" }, text);
  const followed = createFollowedRuns({ state, link, signal });
  const refused = element("p", { class: "nbp-bad nbp-refused", role: "status", hidden: "" });
  const together = element("span", { class: "nbp-comparing" }, word("drawn as"), drawn.el);
  const el = element(
    "footer",
    { role: "none" },
    element("span", { class: "nbp-comparing nbp-comparing-heat" }, word("heat map"), heat.el),
    together,
    element("span", { class: "nbp-comparing" }, word("aligned by"), aligned.el),
    followed.el,
    refused,
  );

  return {
    el,
    refresh() {
      const { others, ratio_to: to, aligned: by, grouped } = state.selection;
      followed.refresh();
      setHidden(el, !others.length && followed.el.hidden);
      setHidden(together, others.length < 2);
      heat.show(ratioOptions(state), to);
      drawn.show(DRAWN, grouped ? "group" : "lines");
      aligned.show(ALIGNMENTS, by);
      const why = refusedText(state);
      setText(refused, why);
      setHidden(refused, !why);
    },
  };
}

/**
 * The values of this run, or its ratio to one that is compared.
 * @param {PanelState} state
 * @returns {Array<[string, string]>}
 */
export function ratioOptions(state) {
  const { others, grouped, ratio_to: to } = state.selection;
  if (grouped && others.length > 1) return [["", "value"], [to || others[0], `ratio to the group of ${others.length}`]];
  /** @type {Array<[string, string]>} */
  const ratios = others.map((run) => [run, `ratio to ${runName(state, run)}`]);
  return [["", "value"], ...ratios];
}
