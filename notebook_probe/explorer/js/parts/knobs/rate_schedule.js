/** Options for a scheduled learning rate: multiply the schedule, or hold a value. */

import { element, setHidden, setText } from "../../dom.js";
import { significant } from "../../format.js";
import { rateText } from "./rate_text.js";

/** @typedef {{ choice: RateChoice, view: string, release: () => void, signal: AbortSignal }} RateScheduleParts */

/** @param {RateScheduleParts} parts */
export function createRateSchedule({ choice, view, release, signal }) {
  const words = element("span");
  const [multiply, hold] = ["multiply", "hold"].map((value) =>
    element("input", { type: "radio", name: `nbp-schedule-${view}`, value }),
  );
  multiply.checked = true;
  const times = element("span");
  const held = element("span");
  const leave = element(
    "button",
    { type: "button", class: "nbp-link", "data-action": "release" },
    "release",
  );
  const el = element(
    "section",
    { class: "nbp-rate-schedule" },
    element("p", { class: "nbp-soft" }, words, " ", leave),
    element("label", {}, multiply, times),
    element("label", {}, hold, held),
  );
  leave.addEventListener("click", release, { signal });

  /** @param {KnobRow} knob */
  function describe(knob) {
    const scheduled = knob.details.filter((one) => one.scheduled !== null);
    setHidden(el, !scheduled.length);
    if (!scheduled.length) return;
    const [first] = scheduled;
    const group = knob.details.indexOf(first);
    const isHeld = knob.details.some((one) => one.held);
    const isSet = knob.groups[group] !== first.scheduled;
    setText(words, headingText(first.scheduled, isHeld, isSet));
    setHidden(leave, !isHeld && !isSet);
    const to = choice.chosen(group);
    const factor = first.scheduled && to !== null ? to / first.scheduled : null;
    multiply.disabled = factor === null; // a schedule that is at 0 has no factor
    if (multiply.disabled) hold.checked = true;
    setText(times, ` multiply what it sets by ${factor === null ? "…" : significant(factor)}`);
    setText(held, ` hold ${choice.value === null ? "each group" : rateText(to)} until released`);
  }

  return { el, describe, holds: () => !el.hidden && hold.checked };
}

/**
 * @param {number | null} scheduled
 * @param {boolean} isHeld
 * @param {boolean} isSet
 */
function headingText(scheduled, isHeld, isSet) {
  if (isHeld) return `Set by hand; its schedule says ${rateText(scheduled)}:`;
  if (isSet) return `A schedule says ${rateText(scheduled)}, and this is a factor of it:`;
  return "A schedule sets the rate at every step:";
}
