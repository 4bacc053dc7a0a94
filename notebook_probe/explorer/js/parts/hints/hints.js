/** Hints in the first panel of a notebook: what to click. Each can be closed permanently. */

import { element, setHidden } from "../../dom.js";

/** @type {Array<[HintClosed["name"], string]>} */
const TEXTS = [
  ["layer", "Click a layer, or a row of the heat map: its series appears in the lines."],
  ["attach", "Attach measures one more quantity, from the next step on, while your cell trains."],
  ["alerts", "If something goes wrong, the bottom line says what. Click it to see where it began."],
];
const TITLE = "Close this hint permanently";

/** @param {Pick<PanelParts, "root" | "state" | "link" | "signal">} parts */
export function createHints({ root, state, link, signal }) {
  const el = element("ul", { class: "nbp-hints", "aria-label": "hints", hidden: "" });
  const items = TEXTS.map(([name, text]) => {
    const close = element("button", { type: "button", "data-hint": name, "aria-label": TITLE, title: TITLE }, "✕");
    return { name, close, item: element("li", { class: "nbp-closed" }, element("span", {}, text), close) };
  });
  el.append(...items.map(({ item }) => item));
  el.addEventListener("click", close, { signal });
  state.on("hints", refresh);

  /** @param {Event} event */
  function close(event) {
    const pressed = items.find((one) => one.close === event.target);
    if (!pressed) return;
    const { name } = pressed;
    link.send("close_hint", { name });
    state.parts.hints = { open: state.parts.hints.open.filter((one) => one !== name) };
    refresh(); // at once: the kernel answers later
    const next = items.find(({ item }) => !item.classList.contains("nbp-closed"));
    (next?.close ?? root).focus();
  }

  /** A closed one leaves its place free until all are closed: nothing moves under the pointer. */
  function refresh() {
    const { open } = state.parts.hints;
    setHidden(el, !open.length);
    for (const { name, item } of items) item.classList.toggle("nbp-closed", !open.includes(name));
  }

  return { el };
}
