/** A line for each parameter group: what is in it, its rate now, and what it will be. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { rateIn, rateInput, rateText } from "./rate_text.js";

/**
 * @typedef {{
 *   choice: RateChoice,
 *   edited: (typing?: HTMLElement | null) => void,
 *   signal: AbortSignal,
 * }} RateGroupsParts
 */

/** @param {RateGroupsParts} parts */
export function createRateGroups({ choice, edited, signal }) {
  const rows = element("div", { class: "nbp-rate-groups" });
  const box = element("input", { type: "checkbox", "data-role": "together" });
  const together = element("label", {}, box, " all groups by the same factor");
  const el = element("section", {}, rows, together);
  /** @type {Array<ReturnType<typeof line>>} */
  let lines = [];

  box.addEventListener("change", () => (choice.setTogether(box.checked), edited()), { signal });

  /** @param {number} group */
  function line(group) {
    const contents = element("span", { class: "nbp-soft" });
    const now = element("span", { class: "nbp-soft nbp-mono" });
    const field = element("input", {
      type: "text",
      inputmode: "decimal",
      spellcheck: "false",
      "data-group": group,
      "aria-label": `Learning rate of group ${group}`,
    });
    field.addEventListener(
      "input",
      () => {
        const value = rateIn(field.value);
        setAttribute(field, "aria-invalid", value === null ? "true" : null);
        if (value === null) return;
        choice.setGroup(group, value);
        edited(field);
      },
      { signal },
    );
    const name = element("span", {}, `group ${group}`);
    const row = element("div", { class: "nbp-rate-group" }, name, contents, now, field);
    return { row, contents, now, field };
  }

  /**
   * @param {KnobRow} knob
   * @param {HTMLElement | null} typing
   */
  function describe(knob, typing) {
    setHidden(el, knob.groups.length < 2);
    if (lines.length !== knob.groups.length) {
      lines = knob.groups.map((_, group) => line(group));
      rows.replaceChildren(...lines.map(({ row }) => row));
    }
    box.checked = choice.together;
    lines.forEach(({ contents, now, field }, group) => {
      const text = knob.details[group]?.text ?? "";
      setText(contents, text);
      setAttribute(contents, "title", text);
      const value = knob.groups[group];
      setText(now, value === null ? "none" : `${rateText(value)} →`);
      field.disabled = value === null;
      if (field !== typing) {
        field.value = rateInput(choice.chosen(group));
        setAttribute(field, "aria-invalid", null);
      }
    });
  }

  return { el, describe };
}
