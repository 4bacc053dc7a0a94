/** The alerts of the line that was left for a branch, beside those of the branch where both are asked for. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { causesOf } from "./causes.js";

/**
 * The causes to be listed, by their steps; those of the line that was left have `left`.
 * @param {PanelState} state
 */
export function listedCauses(state) {
  const own = causesOf(state);
  if (!state.both) return own;
  const { rows, findings } = state.parts.left;
  const before = causesOf({ alerts: rows, findings }).map(ofLeft);
  return [...before, ...own].sort((one, other) => one.step - other.step);
}

/**
 * @param {ListedFinding} finding
 * @returns {ListedFinding}
 */
function ofLeft(finding) {
  return { ...finding, key: `left ${finding.key}`, left: true, below: finding.below.map(ofLeft) };
}

/**
 * The alerts that both step axes mark.
 * @param {Pick<PanelState, "alerts" | "both" | "parts">} state
 * @returns {PanelAlert[]}
 */
export function markedAlerts({ alerts, both, parts }) {
  return both ? [...alerts, ...parts.left.rows.map((one) => ({ ...one, left: true }))] : alerts;
}

/**
 * A link that lists both, or those of the branch alone; `asked` is called when both are.
 * @param {Pick<PanelParts, "state" | "signal">} parts
 * @param {() => void} asked
 */
export function createBoth({ state, signal }, asked) {
  const el = element("button", { class: "nbp-link", type: "button", "data-action": "both", hidden: "" });
  el.addEventListener("click", turn, { signal });
  for (const topic of ["left", "alerts"]) state.on(topic, describe);

  function turn() {
    state.both = !state.both;
    state.emit("alerts");
    if (state.both) asked();
  }

  function describe() {
    const there = state.parts.left.rows.length > 0;
    if (!there) state.both = false;
    setHidden(el, !there);
    setText(el, state.both ? "this branch alone" : "show both");
    setAttribute(el, "title", state.both ? null : "Also list those of the parent branch, and mark their steps");
  }

  describe();
  return el;
}
