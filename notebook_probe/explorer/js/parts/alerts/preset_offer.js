/** The alerts preset at one click, while a rule waits for what it would attach. */

import { createTicket } from "../../dialogs/ticket.js";
import { element, isGreyed, setGreyed, setHidden, setText } from "../../dom.js";
import { hasEnded } from "../../state.js";
import { WAITS } from "./waits.js";

const TITLE = 'Measure what the rules look at: the preset "alerts", run.attach_preset("alerts")';

/** @param {PanelParts} parts */
export function createPresetOffer(parts) {
  const { state, link, signal } = parts;
  const button = element("button", {
    class: "nbp-link nbp-attach-here",
    type: "button",
    "data-action": "attach-alerts",
    hidden: "",
  });
  const el = element("span", {}, button);
  /** @type {ReturnType<typeof createTicket> | null} */
  let ticket = null;
  button.addEventListener("click", attach, { signal });
  for (const topic of ["rules", "status", "model"]) state.on(topic, refresh);

  function attach() {
    if (isGreyed(button)) return;
    ticket ??= createTicket(parts);
    button.replaceWith(ticket.el);
    ticket.follow(link.ask("preset", { name: "alerts" }), "attached");
  }

  function refresh() {
    const why = state.status.can.preset; // undefined where the kernel attaches none
    const isOffered = !ticket && why !== undefined && !hasEnded(state.status);
    const waiting = isOffered ? waitingFor(state) : [];
    setHidden(button, !waiting.length);
    if (!waiting.length) return setText(button, "");
    setText(button, `attach ${waiting.length === 1 ? "its" : "their"} quantities`);
    return setGreyed(button, why, TITLE);
  }

  return { el };
}

/**
 * Rules that wait for a quantity that fits somewhere and is attached nowhere.
 * @param {Pick<PanelState, "parts" | "model" | "probes">} state
 */
function waitingFor({ parts, model, probes }) {
  const attached = new Set(probes.rows.map(({ quantity }) => quantity));
  /** @type {(name: string) => boolean} */
  const lacks = (name) => {
    const one = model.quantities.find((quantity) => quantity.name === name);
    return one !== undefined && !attached.has(name) && model.kinds.some((kind) => !one.misfits[kind]);
  };
  return parts.rules.rules.filter(
    ({ state }) => state.startsWith(WAITS) && state.slice(WAITS.length).split(", ").some(lacks),
  );
}
