/** A bar that cannot be overlooked: the model is compiled, so that its calls are not measured. */

import { element, isGreyed, setAttribute, setGreyed, setHidden, setText } from "../dom.js";
import { grouped, modulesText } from "../format.js";
import { probesText } from "../probes.js";
import { queuedText } from "./queued.js";

/** @typedef {{ id: string, waiting: Set<string>, ticket: TicketRow | null }} AskedEager */

const MOST_NAMED = 3;
const EAGER_TITLE =
  "From the next step on, only steps in which a probe is due run uncompiled; nothing is compiled again";
const FINE_PRINT =
  "Weights and gradients are recorded anyway. Eager and compiled kernels may differ in the last " +
  "bits. With every(1) every step runs eagerly: choose a longer schedule, such as every(10).";

/** @param {Pick<PanelParts, "state" | "link" | "signal">} parts */
export function createCompiledNotice({ state, link, signal }) {
  const words = element("span");
  const fine = element("div", { class: "nbp-hint" }, FINE_PRINT);
  const outcome = element("span", { class: "nbp-outcome", role: "status" });
  const button = element(
    "button",
    { class: "nbp-main", type: "button", "data-action": "eager" },
    "Run probed steps eagerly",
  );
  const text = element("div", { class: "nbp-notice-text", role: "alert" }, words, fine);
  const el = element("div", { class: "nbp-notice", hidden: "" }, text, outcome, button);
  /**
   * The click that is followed until a value has come: its ticket, and who is waited for.
   * @type {AskedEager | null}
   */
  let asked = null;

  button.addEventListener("click", ask, { signal });
  for (const topic of ["status", "tickets", "model"]) state.on(topic, refresh);

  const compiled = () => state.status.silent.find(({ kind }) => kind === "compiled");
  /** @type {(group: SilentRow) => ProbeRow[]} */
  const silentRows = (group) => group.probes.map((place) => state.probes.rows[place]);

  function ask() {
    const group = compiled();
    if (isGreyed(button) || !group) return;
    const waiting = new Set(silentRows(group).map(keyOf));
    asked = { id: link.ask("compiled", { steps: "eager" }), waiting, ticket: null };
    refresh();
  }

  function refresh() {
    follow();
    const group = compiled();
    const ticket = asked?.ticket;
    setHidden(el, !group && !asked);
    if (group) setText(words, compiledText(silentRows(group)));
    if (ticket?.state === "applied" && !group)
      setText(words, `Probed steps run eagerly from step ${grouped(ticket.applied_step)} on.`);
    setHidden(fine, !group);
    setText(outcome, outcomeText(ticket));
    setAttribute(outcome, "data-state", asked ? (ticket?.state ?? "sent") : "");
    setHidden(button, Boolean(asked) && ticket?.state !== "refused");
    setGreyed(button, state.status.can.compiled ?? "", EAGER_TITLE);
  }

  /** What became of the click; forgotten once one of its probes has a value. */
  function follow() {
    if (!asked) return;
    const request = asked;
    asked.ticket = state.status.tickets.find(({ id }) => id === request.id) ?? asked.ticket;
    const { ticket, waiting } = asked;
    if (ticket?.state !== "applied") return;
    /** @type {(row: ProbeRow) => boolean} */
    const came = (row) => waiting.has(keyOf(row)) && row.step >= ticket.applied_step;
    if (state.probes.rows.some(came)) asked = null;
  }

  /** @param {TicketRow | null | undefined} ticket */
  function outcomeText(ticket) {
    if (!asked) return "";
    if (!ticket) return "… sent, waiting for the kernel";
    if (ticket.state === "queued") return `… ${queuedText(state, `queued at step ${grouped(ticket.queued_step)}`)}`;
    return ticket.state === "refused" ? `✕ ${ticket.text}` : "… waiting for the first values";
  }

  return { el };
}

/** @type {(row: ProbeRow) => string} */
const keyOf = ({ module, quantity }) => `${module}\n${quantity}`;

/**
 * "This model is compiled: … 12 probes at conv1, bn1, conv2 and 9 more modules have no values."
 * @param {ProbeRow[]} rows
 */
function compiledText(rows) {
  const modules = [...new Set(rows.filter(Boolean).map((row) => row.module))];
  const rest = modules.length - MOST_NAMED;
  const more = rest > 0 ? ` and ${modulesText(rest).replace(" ", " more ")}` : "";
  const where = modules.slice(0, MOST_NAMED).join(", ") + more;
  const have = rows.length === 1 ? "has" : "have";
  return `This model is compiled and runs no hooks: ${probesText(rows.length)} at ${where} ${have} no values.`;
}
