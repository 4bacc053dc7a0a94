/** One alert in the drawer: what and where; opened, what can be done about it. */

import { createTicket } from "../../dialogs/ticket.js";
import { element, isGreyed, setAttribute, setGreyed, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { explanation } from "./explained.js";
import { createMark } from "./mark.js";
import { createPausing } from "./pausing.js";
import { showAlert, whyNotShown } from "./show.js";
import { createThresholds } from "./thresholds.js";
import { alertWords } from "./words.js";

const SCHEDULE = "every(10)";

/** `el` is a line that has focus as a whole; `describe(isFirst)` brings it up to date. */
export function createAlertLine(alert, parts) {
  const { state, link, signal } = parts;
  const { place, rest } = alertWords(alert);
  const first = element("span", { class: "nbp-first-sign", hidden: "" }, "first sign");
  const attach = element("button", { class: "nbp-link nbp-attach-here", type: "button", hidden: "" });
  const show = element("button", { class: "nbp-link", type: "button", "data-action": "show" }, "show");
  const more = element("div", { class: "nbp-alert-more", hidden: "" });
  const step = element("span", { class: "nbp-alert-step" }, grouped(alert.step));
  const el = element(
    "div",
    { class: "nbp-alert", role: "listitem", tabindex: "-1", "data-rule": alert.rule, "data-open": "false" },
    createMark(alert.severity),
    step,
    element("span", { class: "nbp-alert-text" }, element("code", {}, place), rest, " ", first),
    element("span", { class: "nbp-alert-acts" }, attach, show),
    more,
  );
  let offered = null; // what `attach` would attach
  let ticket = null; // of what was asked for

  const listen = (node, type, run) => node.addEventListener(type, run, { signal });
  listen(el, "click", (event) => event.target.closest("button, input, label, .nbp-alert-more") || toggle());
  listen(show, "click", () => isGreyed(show) || showAlert(alert, parts));
  listen(attach, "click", attachHere);

  function attachHere() {
    if (isGreyed(attach)) return;
    ticket ??= createTicket(parts);
    attach.replaceWith(ticket.el);
    const id = link.ask("attach", { ...offered, schedule: SCHEDULE });
    ticket.follow(id, `${offered.quantity} attached`);
  }

  function toggle() {
    const open = el.dataset.open === "false";
    setAttribute(el, "data-open", open);
    setHidden(more, !open);
    if (!open || more.firstChild) return;
    const pausing = createPausing(alert.rule, "pause when it happens again", parts);
    more.append(createThresholds(alert.rule, parts).el, pausing.el);
  }

  function describeOffer() {
    if (ticket) return;
    const rule = state.parts.rules.rules.find((one) => one.name === alert.rule);
    offered = explanation(alert, rule, state);
    setHidden(attach, !offered);
    if (!offered) return;
    setText(attach, `attach ${offered.quantity} here`);
    setGreyed(attach, state.status.can.attach ?? "", `Measure it ${SCHEDULE} where this was found`);
  }

  function describe(isFirst) {
    setHidden(first, !isFirst);
    setGreyed(show, whyNotShown(alert, state), "Mark its modules, draw its series, go to its step");
    describeOffer();
  }

  return { el, alert, describe, toggle, show: () => show.click() };
}
