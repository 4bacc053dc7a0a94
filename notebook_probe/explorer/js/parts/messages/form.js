/** The form for an address of a service. It is a secret: shown as dots, sent once, kept nowhere. */

import { element, setAttribute, setText } from "../../dom.js";

/** Occasions, and whether they are chosen at first. */
const OCCASIONS = /** @type {const} */ ([
  ["severe", "severe alerts", true],
  ["warning", "all alerts", false],
  ["end", "the end", true],
  ["stalled", "a stall", true],
]);

/** @param {PanelParts} parts */
export function createMessageForm({ state, link, signal }) {
  const address = element("input", {
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Address of a service",
    placeholder: "slack://… or mailto://…",
    autofocus: "",
  });
  const ticks = OCCASIONS.map(([name, , chosen]) => {
    const tick = element("input", { type: "checkbox", "data-occasion": name });
    tick.checked = chosen;
    return tick;
  });
  const labels = ticks.map((tick, i) => element("label", {}, tick, ` ${OCCASIONS[i][1]} `));
  const button = element("button", { type: "submit" }, "Send messages");
  const answer = element("div", { class: "nbp-ticket", role: "status" });
  const about = element("div", { class: "nbp-soft" }, "An address of apprise, which is kept in this process alone.");
  const el = element("form", { class: "nbp-messages-form" }, address, button, ...labels, about, answer);
  let n_asked = 0;
  let asked = ""; // id of the last address that was sent

  el.addEventListener("submit", submitted, { signal });
  state.on("messages", describe);

  /** @param {Event} event */
  function submitted(event) {
    event.preventDefault();
    const on = ticks.filter((tick) => tick.checked).map((tick) => String(tick.dataset.occasion));
    if (!address.value.trim()) return say("refused", "type an address, such as slack://…");
    if (!on.length) return say("refused", "choose an occasion");
    asked = `${Date.now()}-${(n_asked += 1)}`;
    link.send("notify", { id: asked, address: address.value, on });
    address.value = "";
    say("sent", "sent, waiting for the kernel");
  }

  function describe() {
    const { answered, problem } = state.parts.messages;
    if (!asked || answered !== asked) return;
    asked = "";
    if (problem) say("refused", problem);
    else say("applied", "✓ messages are sent from now on");
  }

  /**
   * @param {string} outcome
   * @param {string} text
   */
  function say(outcome, text) {
    setAttribute(answer, "data-state", outcome);
    setText(answer, text);
  }

  return {
    el,
    /** The dialog is closed: what was typed and not sent is gone. */
    clear() {
      address.value = "";
      if (!asked) say("", "");
    },
  };
}
