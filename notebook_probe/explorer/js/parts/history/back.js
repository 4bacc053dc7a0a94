/** Back to a checkpoint: what is to be otherwise from there on, what is restored, and the act. */

import { element, isGreyed, setGreyed, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { createTicket } from "../ticket.js";
import { actionButton, createBackForm } from "./back_form.js";
import { callOf, doneText, endedText, factsOf, goneText, restoredText } from "./back_words.js";

const NO_WAY = "Once the loop has stopped, in a cell:";
const NOT_EVALUATED = "The loop has ended: nbp.recompute measures its checkpoints";

/**
 * @param {CheckpointRow} one
 * @param {Pick<PanelParts, "state" | "link" | "dialogs">} parts
 */
export function createBack(one, { state, link, dialogs }) {
  const ticket = createTicket({ state });
  const first = firstAlertAfter(state, one.step);
  const form = createBackForm(state, one, first);
  const evaluate = actionButton("only evaluate it", "evaluate-back", "nbp-link");
  const cancel = actionButton("Cancel", "cancel-back");
  const act = actionButton("Rewind and run", "rewind", "nbp-main");
  const way = element("div", {}, element("p", {}, NO_WAY), callOf(one));
  const foot = element("footer", { role: "none" }, evaluate, ticket.el, cancel, act);
  const facts = element("span", { class: "nbp-soft" });
  const words = element("p", { class: "nbp-soft" });
  const waits = element("p", { role: "status", "data-role": "waits" });
  const gone = element("p", {}, goneText(one));
  let said = ""; // why it could not be asked for
  let isDone = false; // gone back, so that only what became of it is left to say
  const el = element(
    "div",
    { class: "nbp-sections nbp-back" },
    element(
      "header",
      { role: "none" },
      element("h3", {}, `Back to step ${grouped(one.step)}`),
      facts,
    ),
    form.el,
    element("section", {}, ...(one.gone ? [gone] : [words, waits, way])),
    foot,
  );

  evaluate.addEventListener("click", evaluated);
  act.addEventListener("click", rewind);
  cancel.addEventListener("click", dialogs.close);
  form.el.addEventListener("keydown", (event) => event.key === "Enter" && act.click());

  function evaluated() {
    if (isGreyed(evaluate)) return;
    ticket.follow([link.ask("evaluate", { step: one.step, ...form.evaluated() })]);
    describe();
  }

  function rewind() {
    if (isGreyed(act)) return;
    const fields = form.asked();
    if (fields === null) return ticket.say("refused", "a number is needed there");
    ticket.follow([link.ask("rewind", { step: one.step, ...fields })], settled);
    describe();
  }

  /**
   * What was asked for is done: the strip shows the branch, this says when.
   * @param {string} outcome
   */
  function settled(outcome) {
    if (outcome !== "applied") return;
    isDone = true;
    for (const node of [form.el, evaluate, act, waits, way]) setHidden(node, true);
    setText(cancel, "Close");
  }

  function describe() {
    ticket.describe();
    setText(facts, factsOf(one)); // its age grows
    if (isDone) return setText(words, doneText(state, one));
    const { way: known } = state.parts.history;
    const acts = known !== null && !one.gone;
    const why = known?.why_not ?? "";
    for (const node of [form.el, evaluate, act]) setHidden(node, !acts);
    setHidden(foot, !acts);
    setHidden(way, one.gone || (acts && !why));
    setGreyed(act, why || endedText(state, one));
    setGreyed(evaluate, why || (known?.until == null ? "" : NOT_EVALUATED));
    setText(act, known?.until == null ? "Rewind and run" : "Rewind and continue in the background");
    if (why !== said) why ? ticket.say("refused", why) : ticket.clear();
    said = why;
    setText(words, restoredText(state, one));
    setText(waits, known?.waits ?? "");
    setHidden(waits, !acts || !waits.textContent);
    form.describe();
    return undefined;
  }

  describe();
  return { el, describe };
}

/**
 * @param {Pick<PanelState, "alerts">} state
 * @param {number} step
 */
function firstAlertAfter({ alerts }, step) {
  const later = alerts.filter((one) => one.step > step).map((one) => one.step);
  return later.length ? Math.min(...later) : null;
}
