/** Switch for an alert when this run differs from the chosen ones while it trains. */

import { element, setGreyed, setHidden, setText } from "../../dom.js";
import { createTicket } from "../ticket.js";
import { createSegment } from "./segment.js";

/** @type {Array<["off" | "on", string, string]>} */
const CHOICES = [
  ["off", "off", "No alert compares this run with others"],
  ["on", "where it differs", "An alert names the first module, quantity and step that differ from these runs"],
];

/** @param {Pick<PanelParts, "state" | "link" | "signal">} parts */
export function createFollowedRuns({ state, link, signal }) {
  const choice = createSegment({ label: "Alert", role: "references", choose, signal });
  const ticket = createTicket({ state });
  const known = element("span", { class: "nbp-soft nbp-cut" });
  const el = element(
    "span",
    { class: "nbp-comparing", hidden: "" },
    element("span", { class: "nbp-soft" }, "alert"),
    choice.el,
    known,
    ticket.el,
  );

  /** @param {"off" | "on"} value */
  function choose(value) {
    if (refusal()) return;
    const runs = value === "on" ? state.selection.others : [];
    ticket.follow([link.ask("compare_with", { runs })]);
  }

  function refusal() {
    return state.status.can.compare_with ?? "";
  }

  return {
    el,
    refresh() {
      const { references, are_references: isOn } = state.parts.compare;
      setHidden(el, !state.selection.others.length && !references.length);
      choice.show(CHOICES, isOn ? "on" : "off");
      [...choice.el.children].forEach((button, at) => setGreyed(button, refusal(), CHOICES[at][2]));
      setText(known, references.length && !isOn ? `now compared with ${references.join(", ")}` : "");
      ticket.describe();
    },
  };
}
