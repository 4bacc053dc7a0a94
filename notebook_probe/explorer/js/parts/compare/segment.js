/** One of a few words side by side, whose words may change. */

import { element, setAttribute } from "../../dom.js";

/** @type {Record<string, number>} */
const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** @typedef {{ label: string, role: string, signal: AbortSignal }} SegmentParts */

/**
 * `show(options, value)` with options `[value, text, sentence]`; `choose(value)` by a click or an arrow key.
 * @template {string} Value
 * @param {SegmentParts & { choose: (value: Value) => void }} parts
 */
export function createSegment({ label, role, choose, signal }) {
  const el = element("span", {
    class: "nbp-choice",
    role: "radiogroup",
    "aria-label": label,
    "data-role": role,
  });
  /** @type {Array<[Value, string, string?]>} */
  let shown = [];
  let known = "";
  el.addEventListener("click", clicked, { signal });
  el.addEventListener("keydown", moved, { signal });

  /** @param {MouseEvent} event */
  function clicked(event) {
    const button = event.target.closest("[role=radio]");
    take([...el.children].findIndex((one) => one === button));
  }

  /** @param {number} at */
  function take(at) {
    if (shown[at]) choose(shown[at][0]);
  }

  /** @param {KeyboardEvent} event */
  function moved(event) {
    const by = MOVES[event.key];
    if (!by || !shown.length) return;
    const all = [...el.children];
    const from = all.findIndex((one) => one.matches(":focus"));
    const next = (from + by + all.length) % all.length;
    all[next].focus();
    take(next);
    event.preventDefault();
    event.stopPropagation();
  }

  return {
    el,
    /**
     * @param {Array<[Value, string, string?]>} options
     * @param {Value} value
     */
    show(options, value) {
      const wanted = JSON.stringify(options);
      if (known !== wanted) {
        [known, shown] = [wanted, options];
        el.replaceChildren(...options.map(option));
      }
      [...el.children].forEach((button, at) => {
        const on = options[at][0] === value;
        setAttribute(button, "aria-checked", on);
        button.tabIndex = on ? 0 : -1;
      });
    },
  };
}

/** @param {[string, string, string?]} one */
function option([value, text, sentence]) {
  const data = { "data-value": value, title: sentence ?? text };
  return element("button", { type: "button", class: "nbp-option nbp-cut", role: "radio", ...data }, text);
}
