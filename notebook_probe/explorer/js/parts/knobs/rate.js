/** The learning rate: a slider, an exact field, factors, its groups, its schedule, and one button. */

import { element, listener, setAttribute, setGreyed, setHidden, setText } from "../../dom.js";
import { grouped, significant } from "../../format.js";
import { createTicket } from "../ticket.js";
import { NO_KNOB, createRateChoice } from "./rate_choice.js";
import { createRateGroups } from "./rate_groups.js";
import { createRateSchedule } from "./rate_schedule.js";
import { rateIn, rateInput, rateText } from "./rate_text.js";
import { createSlider } from "./slider.js";

/** @type {Array<[string, number]>} */
const FACTORS = [
  ["÷ 10", 0.1],
  ["÷ 3", 1 / 3],
  ["× 3", 3],
  ["× 10", 10],
];
const NO_RATE = "The learning rate must be positive";
const APART = "Each group is set separately";
const DECADES = 2; // to either side of what it is now

/** @param {Pick<PanelParts, "state" | "link" | "signal">} parts */
export function createRate({ state, link, signal }) {
  const choice = createRateChoice();
  const ticket = createTicket({ state });
  const of = element("span", { class: "nbp-soft" });
  const slider = createSlider({ label: "Learning rate", changed: slid, signal });
  const field = element("input", {
    type: "text",
    inputmode: "decimal",
    spellcheck: "false",
    autofocus: "",
    "data-knob": "lr",
    "aria-label": "Learning rate",
  });
  const factors = FACTORS.map(([text, factor]) => {
    const button = element("button", { type: "button", "data-factor": text }, text);
    button.addEventListener("click", () => times(factor), { signal });
    return button;
  });
  const hint = element("p", { class: "nbp-aside" });
  const groups = createRateGroups({ choice, edited, signal });
  const schedule = createRateSchedule({
    choice,
    view: link.view,
    release: () => ticket.follow([link.ask("release", { name: "lr" })]),
    signal,
  });
  const last = element("span", { class: "nbp-soft" });
  const set = element(
    "button",
    { type: "button", class: "nbp-main", "data-action": "set-rate" },
    "Set from the next step",
  );
  const el = element(
    "div",
    { class: "nbp-lr" },
    element("header", { role: "none" }, element("h3", {}, "Learning rate"), of),
    element(
      "section",
      {},
      slider.el,
      element(
        "div",
        { class: "nbp-rate-exact" },
        field,
        element("span", { class: "nbp-factors" }, ...factors),
      ),
      hint,
    ),
    groups.el,
    schedule.el,
    element("footer", { role: "none" }, element("span", { class: "nbp-said" }, last, ticket.el), set),
  );
  let knob = NO_KNOB;
  /** @type {{ low: number, high: number } | null} */
  let frame = null; // the ends of the slider: they stay while the dialog is open

  const listen = listener(signal);
  listen(field, "input", typed);
  listen(field, "keydown", (event) => event.key === "Enter" && apply());
  listen(set, "click", apply);

  /** @param {number} value */
  function slid(value) {
    if (choice.alike()) choice.setValue(value);
    else choice.setFactor(value);
    edited();
  }

  /** @param {number} factor */
  function times(factor) {
    choice.setFactor(choice.factor * factor);
    edited();
  }

  function typed() {
    const value = rateIn(field.value);
    setAttribute(field, "aria-invalid", value === null ? "true" : null);
    if (value === null) return field.value.trim() ? ticket.say("refused", NO_RATE) : ticket.clear();
    choice.setValue(value);
    return edited(field);
  }

  /**
   * Something was chosen; `typing` is the field that is being typed into, which is left alone.
   * @param {HTMLElement | null} [typing]
   */
  function edited(typing = null) {
    ticket.clear();
    show(typing);
  }

  function apply() {
    if (field.getAttribute("aria-invalid")) return ticket.say("refused", NO_RATE);
    if (set.getAttribute("aria-disabled") === "true") return undefined;
    const ids = choice.ask(link, schedule.holds());
    return ticket.follow(ids, (outcome) => outcome === "applied" && choice.reset());
  }

  /** @param {HTMLElement | null} typing */
  function show(typing) {
    const { hint: told } = state.parts.knobs;
    setText(of, knob.of);
    describeSlider();
    const invalid = field.getAttribute("aria-invalid");
    if (field !== typing && !(invalid && field.matches(":focus"))) {
      field.value = rateInput(choice.value);
      setAttribute(field, "aria-invalid", null);
    }
    field.placeholder = knob.value === null ? "differ" : "";
    field.disabled = !choice.together || !choice.alike();
    for (const button of factors) setGreyed(button, choice.together ? "" : APART);
    describeHint(told);
    groups.describe(knob, typing);
    schedule.describe(knob);
    setGreyed(set, state.status.can.set ?? "");
    describeFoot();
  }

  function describeSlider() {
    const now = knob.value ?? 1; // of groups that are unlike it moves their factor
    frame ??= { low: 10 ** (decade(now) - DECADES), high: 10 ** (decade(now) + DECADES) };
    const value = choice.alike() ? choice.chosen(0) : choice.factor;
    slider.describe({ ...frame, log: true, now, value });
    slider.grey(choice.together ? "" : APART);
  }

  /** @param {RateHint | null} told */
  function describeHint(told) {
    setHidden(hint, !told || !choice.together);
    if (!told || !choice.together) return;
    const value = knob.value === null ? null : Number((knob.value * told.factor).toPrecision(2));
    const text = value === null ? `× ${significant(told.factor, 2)}` : rateText(value);
    const key = `${told.ratio} ${text}`;
    if (hint.dataset.key === key) return;
    hint.dataset.key = key;
    const take = element("button", { type: "button", class: "nbp-link", "data-action": "hint" }, text);
    listen(take, "click", () => {
      if (value === null) choice.setFactor(told.factor);
      else choice.setValue(value);
      edited();
    });
    const ratio = element("code", {}, "update_ratio");
    const usual = ` is ${significant(told.ratio, 2)} in the typical layer; about `;
    hint.replaceChildren(ratio, usual, `${significant(told.common)} is common. `, take, " would bring it there.");
  }

  function describeFoot() {
    const change = state.parts.knobs.last;
    setText(last, change ? `${change.text.replace(/^lr /, "")} at step ${grouped(change.step)}` : "");
    setHidden(last, Boolean(ticket.el.textContent));
  }

  return {
    el,
    /** @param {KnobRow} told */
    describe(told) {
      knob = told;
      choice.told(told);
      ticket.describe();
      show(typingIn());
    },
  };

  /** What is typed is not overwritten by what the kernel says meanwhile. */
  function typingIn() {
    return choice.isChanged ? el.querySelector("input:focus") : null;
  }
}

/** @param {number} value */
function decade(value) {
  return Math.floor(Math.log10(value > 0 ? value : 1e-3));
}
