/** A tick that has the run pause when a rule fires: a breakpoint on it, or on every severe one. */

import { createTicket } from "../../dialogs/ticket.js";
import { element, isGreyed, setAttribute } from "../../dom.js";

export const SEVERE = "severe"; // every rule that tells of a training which is about to be lost

/**
 * @param {string} rule
 * @param {string} words
 * @param {PanelParts} parts
 */
export function createPausing(rule, words, parts) {
  const { state, link, signal } = parts;
  const tick = element("input", { type: "checkbox", "data-pauses": rule });
  const label = element("label", {}, tick, ` ${words}`);
  const ticket = createTicket(parts);
  const el = element("span", { class: "nbp-pause-tick" }, ticket.el, label);
  /** @type {boolean | null} */
  let wanted = null; // what was ticked, until the kernel says it

  tick.addEventListener("click", (event) => isGreyed(tick) && event.preventDefault(), { signal });
  tick.addEventListener("change", asked, { signal });
  state.on("breaks", () => {
    wanted = null;
    describe();
  });
  for (const topic of ["model", "rules", "status"]) state.on(topic, describe);

  /** @type {(name: string) => BreakRow | undefined} */
  const onlyOn = (name) => state.parts.breaks.rows.find(({ rules }) => rules?.length === 1 && rules[0] === name);

  function asked() {
    wanted = tick.checked;
    const there = onlyOn(rule);
    const id = there
      ? link.ask("edit_break", { which: there.id, armed: wanted, number: null })
      : link.ask("break", { ...ON_ALERT, rules: rule === SEVERE ? [] : [rule] });
    ticket.follow(id, wanted ? "armed" : "off");
  }

  function describe() {
    const fixed = whyFixed();
    const isRefused = ticket.el.dataset.state === "refused";
    const armed = fixed === COVERED || Boolean(onlyOn(rule)?.armed);
    tick.checked = isRefused ? armed : (wanted ?? armed);
    setAttribute(tick, "aria-disabled", fixed ? "true" : null);
    setAttribute(label, "title", fixed || null);
  }

  function whyFixed() {
    if (!state.model.live) return "needs a kernel";
    if (!state.parts.breaks.live) return "this run has ended";
    const severe = state.parts.breaks.severe ?? [];
    return rule !== SEVERE && severe.includes(rule) && onlyOn(SEVERE)?.armed ? COVERED : "";
  }

  describe();
  return { el };
}

const COVERED = "every severe alert pauses the run";
/** @type {Omit<ClickOf<"break">, "rules">} */
const ON_ALERT = {
  kind: "alert",
  module: "(root)",
  quantity: "",
  sign: ">",
  number: 0,
  for_rows: 1,
  before: "step",
};
