/** One knob beside the learning rate: a slider where it has ends, an exact field, its ticket. */

import { element, setAttribute, setHidden } from "../../dom.js";
import { createTicket } from "../ticket.js";
import { numberIn, rateInput } from "./rate_text.js";
import { createSlider } from "./slider.js";

/**
 * @param {string} name
 * @param {Pick<PanelParts, "state" | "link" | "signal">} parts
 */
export function createKnobRow(name, { state, link, signal }) {
  const ticket = createTicket({ state });
  const slider = createSlider({
    label: name,
    changed: (value) => (field.value = rateInput(value)),
    letGo: ask,
    signal,
  });
  const field = element("input", {
    type: "text",
    inputmode: "decimal",
    "data-knob": name,
    "aria-label": name,
    spellcheck: "false",
  });
  const el = element(
    "div",
    { class: "nbp-knob" },
    element("span", { class: "nbp-knob-name", title: name }, name),
    slider.el,
    field,
    ticket.el,
  );
  /** @type {Pick<KnobRow, "value" | "log" | "low" | "high">} */
  let knob = { value: null, log: false, low: null, high: null };
  /** @type {number | null} */
  let asked = null; // shown until the kernel has it

  field.addEventListener("keydown", (event) => event.key === "Enter" && enter(), { signal });
  field.addEventListener("input", ticket.clear, { signal });

  function enter() {
    const value = numberIn(field.value);
    setAttribute(field, "aria-invalid", value === null ? "true" : null);
    if (value === null) return ticket.say("refused", "a number is needed");
    return ask(value);
  }

  /** @param {number} value */
  function ask(value) {
    asked = value;
    const id = link.ask("set", { name, value, group: null, hold: false });
    ticket.follow([id], () => (asked = null));
  }

  return {
    el,
    /** @param {KnobRow} told */
    describe(told) {
      knob = told;
      ticket.describe();
      const { low, high, log, value } = knob;
      setHidden(slider.el, low === null || high === null);
      if (low !== null && high !== null) {
        slider.describe({ low, high, log, now: value, value: asked ?? value });
      }
      field.placeholder = value === null ? "differ" : "";
      if (!field.matches(":focus") && asked === null) field.value = rateInput(value);
    },
  };
}
