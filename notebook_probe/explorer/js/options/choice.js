/** One of a few, with a sentence on what it does: a line of a dialog. */

import { element, isGreyed, setAttribute, setGreyed, setText } from "../dom.js";

/** @typedef {Record<string, number>} ChoiceKeys */

/** @type {Record<string, number>} */
const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** @typedef {{ label: string, role: string, signal: AbortSignal }} ChoiceParts */

/**
 * One field as a change of what has it.
 * @template Of
 * @template {keyof Of} Field
 * @param {Field} field
 * @param {Of[Field]} value
 * @returns {Partial<Of>}
 */
export function patchOf(field, value) {
  /** @type {Partial<Of>} */
  const patch = {};
  patch[field] = value;
  return patch;
}

/**
 * `options` are `[value, text, sentence]`; `choose(value)` is called by a click or an arrow key.
 * @template Value
 * @param {ChoiceParts & { options: Array<[Value, string, string]>, choose: (value: Value) => void }} parts
 */
export function createChoice({ label, role, options, choose, signal }) {
  const buttons = options.map(([value, text]) =>
    element(
      "button",
      { type: "button", class: "nbp-option", role: "radio", "data-value": String(value), "aria-checked": "false" },
      text,
    ),
  );
  const group = element(
    "span",
    { class: "nbp-choice", role: "radiogroup", "aria-label": label, "data-role": role },
    ...buttons,
  );
  const sentence = element("div", { class: "nbp-hint" });
  const el = element(
    "div",
    { class: "nbp-choice-line" },
    element("span", { class: "nbp-choice-label" }, label),
    group,
    sentence,
  );
  buttons.forEach((button, k) => {
    button.addEventListener("click", () => isGreyed(button) || choose(options[k][0]), { signal });
  });
  group.addEventListener("keydown", moved, { signal });

  /** @param {KeyboardEvent} event */
  function moved(event) {
    const by = MOVES[event.key];
    if (!by) return;
    const from = buttons.findIndex((button) => button.matches(":focus"));
    const at = (from + by + buttons.length) % buttons.length;
    buttons[at].focus();
    if (!isGreyed(buttons[at])) choose(options[at][0]);
    event.preventDefault();
    event.stopPropagation();
  }

  return {
    el,
    /**
     * `extra` is added to the sentence; `refused` has the reason why an option cannot be chosen.
     * @param {Value} value
     * @param {string} [extra]
     * @param {Readonly<Record<string, string>>} [refused]
     */
    show(value, extra = "", refused = {}) {
      const at = options.findIndex(([one]) => one === value);
      buttons.forEach((button, k) => {
        setAttribute(button, "aria-checked", k === at);
        button.tabIndex = k === at ? 0 : -1;
        setGreyed(button, refused[String(options[k][0])]);
      });
      setText(sentence, [options[at]?.[2], extra].filter(Boolean).join(" "));
    },
  };
}
