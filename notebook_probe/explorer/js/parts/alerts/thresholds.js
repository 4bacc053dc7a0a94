/** The numbers of a rule, edited in place: what another would have found, and keeping it. */

import { createTicket } from "../../dialogs/ticket.js";
import { element, setAttribute, setHidden, setText, throttled } from "../../dom.js";
import { grouped } from "../../format.js";

const TRY_MS = 250;
/** @type {Record<string, string>} */
const WORDS = { most: "above", least: "below", times: "times", window: "window" };
const WHOLE = ["rows", "steps", "window"];
const OFF = "off: ";

/** @typedef {{ numbers: Record<string, number>, text: string }} TriedNumber */

/**
 * @param {string} name
 * @param {PanelParts} parts
 */
export function createThresholds(name, parts) {
  const { state, link, signal } = parts;
  const fields = element("span", { class: "nbp-thresholds" });
  const says = element("span", { class: "nbp-trial nbp-soft", role: "status" });
  const ticket = createTicket({ state, signal });
  const title = element("code", {}, name);
  const el = element("div", { class: "nbp-rule" }, title, fields, says, ticket.el);
  /** @type {Map<string, HTMLInputElement>} */
  const inputs = new Map(); // number of the rule -> its field
  /** @type {TriedNumber | null} */
  let tried = null; // what the kernel is asked about

  const ask = throttled(
    TRY_MS,
    () => tried && link.send("try_rule", { rule: name, numbers: tried.numbers }),
    signal,
  );
  for (const topic of ["rules", "status", "model"]) state.on(topic, refresh);

  const ruleNow = () => state.parts.rules.rules.find((one) => one.name === name);

  /**
   * @param {string} number
   * @returns {number | null}
   */
  function knownNumber(number) {
    const rule = ruleNow();
    return rule ? (numbersOf(rule)[number] ?? null) : null;
  }

  function refresh() {
    if (!el.isConnected && inputs.size) return;
    const rule = ruleNow();
    setAttribute(title, "title", rule?.summary ?? null);
    setHidden(fields, !rule);
    const why = whyFixed(rule, state);
    if (!rule) return say(why, false);
    for (const [number, value] of Object.entries(numbersOf(rule))) {
      const input = inputs.get(number) ?? addField(number, value);
      setAttribute(input, "readonly", why ? "" : null);
      if (!input.matches(":focus")) put(input, value);
    }
    if (rule.state.startsWith(OFF)) say(`turned off after an error: ${rule.state.slice(OFF.length)}`, true);
    else if (why) say(why, false);
    else if (tried) sayTrial(tried);
  }

  /**
   * @param {string} number
   * @param {number | null} value
   */
  function addField(number, value) {
    const input = element("input", {
      type: "text",
      inputmode: "decimal",
      "data-threshold": number,
      "aria-label": `${name}: ${number}`,
      spellcheck: "false",
    });
    put(input, value);
    inputs.set(number, input);
    input.addEventListener("input", () => typed(number, input), { signal });
    input.addEventListener("keydown", (event) => pressed(event, number, input), { signal });
    const [before, after] = wordsAround(number, value);
    fields.append(element("label", { class: "nbp-threshold" }, before, input, after));
    return input;
  }

  /**
   * @param {string} number
   * @param {HTMLInputElement} input
   */
  function typed(number, input) {
    put(input, input.value);
    const value = parsed(input.value);
    const known = knownNumber(number);
    const refusal = whyNoNumber(number, value, known);
    tried = refusal || value === known ? null : { numbers: { [number]: value }, text: input.value.trim() };
    say(refusal || (tried ? "…" : ""), Boolean(refusal));
    ticket.say("", "");
    if (tried) ask();
  }

  /**
   * @param {KeyboardEvent} event
   * @param {string} number
   * @param {HTMLInputElement} input
   */
  function pressed(event, number, input) {
    const known = knownNumber(number);
    const value = parsed(input.value);
    if (event.key === "Escape" && value !== known) back(input, known);
    else if (event.key === "Enter") keep(number, value, known);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * @param {HTMLInputElement} input
   * @param {number | null} known
   */
  function back(input, known) {
    tried = null;
    put(input, known);
    say("", false);
  }

  /**
   * @param {string} number
   * @param {number} value
   * @param {number | null} known
   */
  function keep(number, value, known) {
    if (whyFixed(ruleNow(), state) || value === known) return;
    const refusal = whyNoNumber(number, value, known);
    if (refusal) return say(refusal, true);
    tried = null;
    say("", false);
    const id = link.ask("edit_rule", { rule: name, numbers: { [number]: value } });
    ticket.follow(id, "kept for the rows to come,");
  }

  /**
   * "40 would have fired at step 320"
   * @param {TriedNumber} asked
   */
  function sayTrial({ numbers, text }) {
    const { trial } = state.parts.rules;
    if (trial?.rule !== name || JSON.stringify(trial.numbers) !== JSON.stringify(numbers)) return;
    say(trial.problem || `${text} ${firedWords(trial)}`, Boolean(trial.problem));
  }

  /**
   * @param {string} text
   * @param {boolean} bad
   */
  function say(text, bad) {
    setText(says, text);
    says.classList.toggle("nbp-bad", bad);
  }

  refresh();
  return { el };
}

/**
 * @param {RuleRow} rule
 * @returns {Record<string, number | null>}
 */
function numbersOf({ thresholds, rows, steps }) {
  return { ...thresholds, ...(steps ? { steps } : { rows }) };
}

/**
 * @param {RuleRow | undefined} rule
 * @param {PanelState} state
 */
function whyFixed(rule, state) {
  if (!state.model.live) return "opened record: read only";
  return rule ? state.status.can.edit_rule ?? "" : "this rule is no longer followed";
}

/**
 * @param {string} number
 * @param {number | null} value
 */
function wordsAround(number, value) {
  if (number === "rows") return ["for ", value === 1 ? " row" : " rows"];
  if (number === "steps") return ["for ", " steps"];
  return [`${WORDS[number] ?? number} `, number === "window" ? " rows" : ""];
}

/** @param {RuleTrial} trial */
function firedWords({ steps, n }) {
  if (!n) return "would not have fired";
  const more = n > 1 ? `, and ${grouped(n - 1)} ${n > 2 ? "times" : "time"} more` : "";
  return `would have fired at step ${grouped(steps[0])}${more}`;
}

/** @param {string} text */
function parsed(text) {
  return text.trim() ? Number(text.trim().replace(",", ".")) : NaN;
}

/**
 * A number that is above 0 stays so; rows are counted.
 * @param {string} number
 * @param {number} value
 * @param {number | null} known
 */
function whyNoNumber(number, value, known) {
  const whole = WHOLE.includes(number);
  const positive = known !== null && known > 0;
  const fits = Number.isFinite(value) && (!positive || value > 0) && (!whole || Number.isInteger(value));
  return fits ? "" : `a ${whole ? "whole " : ""}number${positive ? " above 0" : ""} is needed`;
}

/**
 * @param {HTMLInputElement} input
 * @param {number | string | null} value
 */
function put(input, value) {
  const text = value === null ? "∞" : String(value);
  if (input.value !== text) input.value = text;
  input.style.width = `${Math.max(2, text.length) + 2}ch`;
}
