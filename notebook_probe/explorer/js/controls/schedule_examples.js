/** Examples of schedules, below the field while it is edited; a click enters one. */

import { element, listener, setHidden } from "../dom.js";

const EXAMPLES = [
  ["every(10)", "every 10 steps; every 10, or 10, is the same"],
  ["every(10, 5)", "every 10 steps from step 5 on"],
  ["linear(5, 2)", "as Taiyi writes it: every 5 steps from step 2 on"],
  ["times(20)", "20 times in the run, evenly"],
  ["geometric(100, 1.2)", "at step 100, and at intervals that grow by a fifth"],
  ["seconds(30)", "every 30 seconds"],
  ["keep(256)", "256 points at most, however long it runs"],
  ["steps(0, 100, 1000)", "at these steps"],
  ["every(10) & between(100, 200)", "where both are due"],
  ["every(100) | geometric(1, 1.5)", "where one of them is due"],
  ["include_first(every(50))", "and at the first step that is seen"],
  ["include_last(every(50))", "and at the last step of the run"],
];

/**
 * What is kept is counted from where it is attached: counted from 0, a late view would stay empty.
 * @param {string} text
 * @param {number} step
 */
export function fromHere(text, step) {
  return step > 0 ? text.replace(/^keep\(\s*(\d+)\s*\)$/, `keep($1, ${step})`) : text;
}

/** @param {{ field: HTMLInputElement, signal: AbortSignal }} parts */
export function createScheduleExamples({ field, signal }) {
  const el = element("div", { class: "nbp-hint nbp-examples", hidden: "" });
  const listen = listener(signal);
  for (const [text, meaning] of EXAMPLES) {
    const example = element("button", { class: "nbp-link", type: "button", title: meaning }, text);
    listen(example, "click", () => {
      field.value = text;
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.focus();
    });
    el.append(example, " ");
  }
  for (const node of [field, el]) {
    listen(node, "focusin", () => setHidden(el, false));
    listen(node, "focusout", (event) => {
      const next = event.relatedTarget;
      if (next !== field && !(next instanceof Node && el.contains(next))) setHidden(el, true);
    });
  }
  listen(el, "mousedown", (event) => event.preventDefault()); // the field keeps the focus
  return { el };
}
