/** A finding in the drawer: what and where; opened, what can be done about it. */

import { createTicket } from "../../dialogs/ticket.js";
import { element, isGreyed, listener, setAttribute, setGreyed, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { batchOfAlert } from "../looks/batch.js";
import { explanation } from "./explained.js";
import { createFold } from "./fold.js";
import { createMark, setSeverity } from "./mark.js";
import { createPausing } from "./pausing.js";
import { showAlert, whyNotShown } from "./show.js";
import { createThresholds } from "./thresholds.js";
import { findingWords } from "./words.js";

const SCHEDULE = "every(10)";

/**
 * `el` is a line that has focus as a whole; `describe(finding, cause)` brings it up to date, `cause` being the
 * line that it stands below. `folded()` is called when what came of it is folded or unfolded.
 * @param {PanelParts} parts
 * @param {() => void} folded
 */
export function createAlertLine(parts, folded) {
  const { state, link, signal } = parts;
  const mark = createMark("warning");
  const before = element("span");
  const place = element("code");
  const rest = element("span");
  const tag = element("span", { class: "nbp-tag", hidden: "" }, "before");
  const fold = createFold(folded, signal);
  const attach = element("button", { class: "nbp-link nbp-attach-here", type: "button", hidden: "" });
  const batch = element("button", { class: "nbp-link", type: "button", "data-action": "batch", hidden: "" });
  const show = element("button", { class: "nbp-link", type: "button", "data-action": "show" }, "show");
  const more = element("div", { class: "nbp-alert-more", hidden: "" });
  const step = element("span", { class: "nbp-alert-step" });
  const el = element(
    "div",
    { class: "nbp-alert", role: "listitem", tabindex: "-1", "data-open": "false" },
    mark,
    step,
    element("span", { class: "nbp-alert-text" }, before, place, rest, tag),
    element("span", { class: "nbp-alert-acts" }, attach, batch, show),
    fold.el,
    more,
  );
  /** @type {AlertLine} */
  const line = { el, fold, describe, toggle, show: () => show.click(), alert: null, cause: null };
  /** @type {{ quantity: string, where: string[] } | null} */
  let offered = null; // what `attach` would attach
  /** @type {ReturnType<typeof createTicket> | null} */
  let ticket = null; // of what was asked for

  const listen = listener(signal);
  listen(el, "click", (event) => event.target.closest("button, input, label, .nbp-alert-more") || toggle());
  listen(show, "click", () => isGreyed(show) || !line.alert || showAlert(line.alert, parts));
  listen(attach, "click", attachHere);
  listen(batch, "click", openBatch);

  function openBatch() {
    state.batch = { step: Number(batch.dataset.step), anchor: batch };
    state.emit("batch");
  }

  /** @param {ListedFinding} alert */
  function describeBatch(alert) {
    const kept = alert.left ? undefined : batchOfAlert(state, alert.step);
    setHidden(batch, !kept);
    if (!kept) return;
    setAttribute(batch, "data-step", kept.step);
    setText(batch, `batch of step ${grouped(kept.step)}`);
    setAttribute(batch, "title", "Show the samples of this batch that are kept");
  }

  function attachHere() {
    if (isGreyed(attach) || !offered) return;
    ticket ??= createTicket(parts);
    attach.replaceWith(ticket.el);
    const id = link.ask("attach", { ...offered, schedule: SCHEDULE });
    ticket.follow(id, `${offered.quantity} attached`);
  }

  function toggle() {
    const open = el.dataset.open === "false";
    setAttribute(el, "data-open", open);
    setHidden(more, !open);
    if (!open || !line.alert || more.firstChild) return;
    const { rule } = line.alert;
    const pausing = createPausing(rule, "pause when it happens again", parts);
    more.append(createThresholds(rule, parts).el, pausing.el);
  }

  /** @param {ListedFinding} alert */
  function describeOffer(alert) {
    if (ticket) return;
    const rule = state.parts.rules.rules.find((one) => one.name === alert.rule);
    offered = explanation(alert, rule, state);
    setHidden(attach, !offered);
    if (!offered) return;
    setText(attach, `attach ${offered.quantity} here`);
    setGreyed(attach, state.status.can.attach ?? "", `Measure it ${SCHEDULE} where this was found`);
  }

  /**
   * @param {ListedFinding} alert
   * @param {AlertLine | null} cause
   */
  function describe(alert, cause) {
    Object.assign(line, { alert, cause });
    const words = findingWords(alert);
    setAttribute(el, "data-rule", alert.rule);
    setAttribute(el, "aria-level", cause ? 2 : 1);
    setHidden(el, cause !== null && !cause.fold.isOpen());
    setSeverity(mark, alert.severity);
    setText(step, grouped(alert.step));
    setText(before, words.before);
    setText(place, words.place);
    setText(rest, words.rest);
    setHidden(tag, !alert.left);
    fold.describe(alert);
    setGreyed(show, whyNotShown(alert, state), "Mark its modules, draw its series, go to its step");
    describeBatch(alert);
    describeOffer(alert);
  }

  return line;
}
