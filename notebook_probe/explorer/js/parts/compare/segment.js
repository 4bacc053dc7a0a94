/** One of a few words side by side, whose words may change. */

import { element, setAttribute } from "../../dom.js";

/** `show(options, value)` with options `[value, text, sentence]`; `choose(value)` by a click or an arrow key. */
export function createSegment({ label, role, choose, signal }) {
  const el = element("span", {
    class: "nbp-choice",
    role: "radiogroup",
    "aria-label": label,
    "data-role": role,
  });
  let known = "";
  el.addEventListener("click", clicked, { signal });
  el.addEventListener("keydown", moved, { signal });

  /** @param {MouseEvent} event */
  function clicked(event) {
    take(/** @type {Element} */ (event.target).closest("[role=radio]"));
  }

  function take(button) {
    if (button) choose(button.dataset.value);
  }

  function moved(event) {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    const all = [...el.children];
    const from = all.findIndex((one) => one.matches(":focus"));
    const next = all.at((from + by) % all.length);
    next.focus();
    take(next);
    event.preventDefault();
    event.stopPropagation();
  }

  return {
    el,
    show(options, value) {
      const wanted = JSON.stringify(options);
      if (known !== wanted) {
        known = wanted;
        el.replaceChildren(...options.map(option));
      }
      for (const button of el.children) {
        const on = button.dataset.value === value;
        setAttribute(button, "aria-checked", on);
        button.tabIndex = on ? 0 : -1;
      }
    },
  };
}

function option([value, text, sentence]) {
  const data = { "data-value": value, title: sentence ?? text };
  return element("button", { type: "button", class: "nbp-option nbp-cut", role: "radio", ...data }, text);
}
