/** Back to a checkpoint: what is to be otherwise from there on, what is restored, and the act. */

import { element, isGreyed, setAttribute, setGreyed, setHidden, setText } from "../../dom.js";
import { bytes, duration, grouped, significant } from "../../format.js";
import { createTicket } from "../ticket.js";

const EARLY = 5; // steps before the first alert at which it is held
const LATER = 50; // steps after it until which the denser probes last
const NO_WAY = "Once the loop has stopped, in a cell:";

/**
 * @param {CheckpointRow} one
 * @param {Pick<PanelParts, "state" | "link" | "dialogs">} parts
 */
export function createBack(one, { state, link, dialogs }) {
  const ticket = createTicket({ state });
  const first = firstAlertAfter(state, one.step);
  const form = createForm(state, one, first);
  const evaluate = button("only evaluate it", "evaluate-back", "nbp-link");
  const cancel = button("Cancel", "cancel-back");
  const act = button("Rewind and run", "rewind", "nbp-main");
  const way = element("div", {}, element("p", {}, NO_WAY), callOf(one));
  const foot = element("footer", {}, evaluate, ticket.el, cancel, act);
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
      {},
      element("h3", {}, `Back to step ${grouped(one.step)}`),
      element("span", { class: "nbp-soft" }, factsOf(one)),
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
    if (isDone) return setText(words, doneText(state, one));
    const { way: known } = state.parts.history;
    const acts = known !== null && !one.gone;
    const why = known?.why_not ?? "";
    for (const node of [form.el, evaluate, act]) setHidden(node, !acts);
    setHidden(foot, !acts);
    setHidden(way, one.gone || (acts && !why));
    for (const node of [evaluate, act]) setGreyed(node, why);
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
 * The rows above the line: probes, learning rate, where to hold.
 * @param {PanelState} state
 * @param {CheckpointRow} one
 * @param {number | null} first
 */
function createForm(state, one, first) {
  const before = button("as before", "as-before");
  const denser = button("denser", "denser");
  const presets = element("select", { "aria-label": "Preset" });
  const schedule = input("Schedule", "every(1)", "9ch");
  const until = input("Until step", first === null ? "" : tens(first + LATER), "8ch");
  const rate = input("Learning rate", "", "11ch");
  rate.placeholder = "as it was";
  const holds = element("input", { type: "checkbox", "aria-label": "Hold" });
  const hold = input("Hold at step", first === null ? "" : Math.max(one.step, first - EARLY), "8ch");
  holds.checked = first !== null;
  const near = first === null ? "" : `${first - Number(hold.value)} before the first alert`;
  const lasts = row("until step", until, soft("then as before"));
  const dense = element("span", { class: "nbp-form" }, presets, schedule);
  const el = element(
    "section",
    { class: "nbp-back-form" },
    row("measure", element("span", { class: "nbp-kinds", role: "group" }, before, denser), dense),
    lasts,
    row("learning rate", rate),
    row("hold at step", holds, hold, soft(near)),
  );
  let isDenser = false;

  const names = (state.parts.probes.presets ?? []).map((preset) => preset.name);
  presets.append(...names.map((name) => new Option(name)));
  if (names.includes("alerts")) presets.value = "alerts";
  before.addEventListener("click", () => choose(false));
  denser.addEventListener("click", () => choose(true));
  hold.addEventListener("input", () => (holds.checked = hold.value.trim() !== ""));

  /** @param {boolean} wanted */
  function choose(wanted) {
    isDenser = wanted;
    describe();
  }

  function describe() {
    setAttribute(before, "aria-pressed", !isDenser);
    setAttribute(denser, "aria-pressed", isDenser);
    setHidden(dense, !isDenser);
    setHidden(lasts, !isDenser);
  }

  /** What the loop is asked for; null where a number is none. */
  function asked() {
    const [to, lr, at] = [until, rate, hold].map(numberOf);
    if ([to, lr, at].some(Number.isNaN) || (holds.checked && at === null)) return null;
    return {
      preset: isDenser ? presets.value : "",
      schedule: schedule.value,
      until: isDenser && to !== null ? Math.round(to) : null,
      rate: lr,
      hold_at: holds.checked && at !== null ? Math.round(at) : null,
    };
  }

  return { el, describe, asked, evaluated: () => ({ preset: isDenser ? presets.value : "" }) };
}

/**
 * @param {PanelState} state
 * @param {CheckpointRow} one
 */
function restoredText(state, one) {
  const { way, branch } = state.parts.history;
  const { rate, step } = state.status;
  const steps = Math.max(0, step - one.step);
  const takes = rate ? `, about ${duration(steps / rate)} to here again` : "";
  const what = way ? `${way.restores} as they were. ` : "";
  const stays = `What was recorded after ${grouped(one.step)} stays, as branch ${branch}`;
  return `${what}${stays}: ${grouped(steps)} steps${takes}.`;
}

/**
 * Of the branch, once it is there.
 * @param {Pick<PanelState, "parts">} state
 * @param {CheckpointRow} one
 */
function doneText({ parts }, { step }) {
  const { branch, fork, left } = parts.history;
  if (fork !== step || !left) return "";
  const stays = `branch ${branch - 1} stays, to step ${grouped(left.to)}`;
  return `Branch ${branch} goes on from step ${grouped(step)}; ${stays}.`;
}

/**
 * @param {Pick<PanelState, "alerts">} state
 * @param {number} step
 */
function firstAlertAfter({ alerts }, step) {
  const later = alerts.filter((one) => one.step > step).map((one) => one.step);
  return later.length ? Math.min(...later) : null;
}

/** @param {CheckpointRow} one */
function factsOf(one) {
  const age = Math.max(0, (Date.now() - one.time_ms) / 1000);
  const loss = one.loss === null ? "" : ` · loss ${significant(one.loss)}`;
  return `checkpoint ${duration(age)} ago · ${bytes(one.nbytes)}${loss}`;
}

/** @param {CheckpointRow} one */
function goneText({ step }) {
  const removed = `the checkpoint of step ${grouped(step)} was removed`;
  return `${removed}; loop.rewind takes the newest one before it and trains up to the step again`;
}

/** @param {CheckpointRow} one */
function callOf({ step }) {
  return element("pre", {}, `run = loop.rewind(${step}, probes="default")`);
}

/**
 * @param {string} name
 * @param {...(Node | string)} parts
 */
function row(name, ...parts) {
  return element("div", { class: "nbp-form" }, element("span", { class: "nbp-back-name" }, name), ...parts);
}

/** @param {string} text */
function soft(text) {
  return element("span", { class: "nbp-soft" }, text);
}

/**
 * @param {string} text
 * @param {string} action
 * @param {string} [kind]
 */
function button(text, action, kind = "") {
  return element("button", { type: "button", class: kind, "data-action": action }, text);
}

/**
 * @param {string} label
 * @param {string | number} value
 * @param {string} width
 */
function input(label, value, width) {
  const attributes = { type: "text", "aria-label": label, spellcheck: "false", style: `width: ${width}` };
  const node = element("input", attributes);
  node.value = String(value);
  return node;
}

/** @param {HTMLInputElement} field */
function numberOf({ value }) {
  const text = value.trim();
  return text === "" ? null : Number(text);
}

/** @param {number} step */
function tens(step) {
  return Math.ceil(step / 10) * 10;
}
