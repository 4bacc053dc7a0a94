/** Words of the bar that fold behind "⋯" where the panel is narrow. */

import { element, setAttribute } from "../dom.js";

/**
 * `el` stands in the bar, `button` shows and hides it; which of the two is seen, the width says.
 * @param {Node[]} words
 * @param {AbortSignal} signal
 */
export function createFoldedWords(words, signal) {
  const button = element(
    "button",
    {
      class: "nbp-dots",
      type: "button",
      "data-action": "words",
      "aria-expanded": "false",
      "aria-label": "Learning rate and cost of probes",
      title: "Learning rate and cost of probes",
    },
    "⋯",
  );
  const el = element("span", { class: "nbp-words" }, ...words);

  const isOpen = () => el.classList.contains("nbp-open");
  /** @type {(open: boolean) => void} */
  const show = (open) => {
    el.classList.toggle("nbp-open", open);
    setAttribute(button, "aria-expanded", open);
  };
  button.addEventListener("click", () => show(!isOpen()), { signal });
  el.addEventListener("keydown", escaped, { signal });
  document.addEventListener("pointerdown", pressedElsewhere, { signal });

  /** @param {KeyboardEvent} event */
  function escaped(event) {
    if (event.key !== "Escape" || !isOpen()) return;
    show(false);
    button.focus();
    event.preventDefault();
  }

  /**
   * What opens at one of the words belongs to them.
   * @param {PointerEvent} event
   */
  function pressedElsewhere(event) {
    /** @type {(node: EventTarget) => boolean} */
    const isOurs = (node) =>
      node === el || node === button || (node instanceof Element && node.classList.contains("nbp-dialog"));
    if (!event.composedPath().some(isOurs)) show(false);
  }

  return { el, button };
}
