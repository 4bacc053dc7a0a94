/** What became of one click on Attach or Detach, in one line. */

import { element, setAttribute, setText } from "../dom.js";
import { grouped } from "../format.js";
import { hasSeries, isVector } from "../state.js";

const DRAWN_AT_ONCE = 4;

/** @param {Pick<PanelParts, "state" | "selection" | "signal">} parts */
export function createRequestOutcome({ state, selection, signal }) {
  const sign = element("span", { class: "nbp-sign", "aria-hidden": "true" });
  const words = element("span");
  const show = element(
    "button",
    {
      class: "nbp-link",
      type: "button",
      title: "Draw these series",
      "data-action": "draw",
      hidden: "",
    },
    "draw",
  );
  const el = element(
    "div",
    { class: "nbp-ticket", role: "status", "data-role": "ticket", "data-state": "" },
    sign,
    words,
    show,
  );
  let followed = null; // { id, verb, where, quantity }

  show.addEventListener("click", draw, { signal });
  for (const topic of ["status", "tickets", "selection"]) state.on(topic, refresh);

  /** @param {string} quantity */
  function follow(id, verb, where, quantity) {
    followed = { id, verb, where, quantity };
    say("sent", "…", "sent, waiting for the kernel");
  }

  function refresh() {
    const row = followed && state.status.tickets.find((one) => one.id === followed.id);
    if (!row) return;
    const queued = `queued ${grouped(row.queued_step)}`;
    if (row.state === "queued") say("queued", "…", `queued at step ${grouped(row.queued_step)}`);
    else if (row.state === "refused") say("refused", "✕", row.text);
    else say("applied", "✓", `${queued}, ${followed.verb} at step ${grouped(row.applied_step)}`);
    setAttribute(el, "title", row.text || null);
    const attached = row.state === "applied" && followed.verb === "attached";
    const drawable = !isVector(state, followed.quantity);
    show.hidden = !attached || !drawable || !undrawn().length;
  }

  /** What was refused is being asked otherwise. */
  function mended() {
    if (el.getAttribute("data-state") !== "refused") return;
    followed = null;
    setAttribute(el, "title", null);
    say("", "", "");
  }

  /** The first of the attached series that are not among the lines yet. */
  function undrawn() {
    const { where, quantity } = followed;
    const asked = where.length ? where : placesOf(quantity);
    const few = asked.slice(0, DRAWN_AT_ONCE).map((module) => [module, quantity]);
    return few.filter(([module, name]) => !hasSeries(state.selection, module, name));
  }

  /** @param {string} quantity */
  function placesOf(quantity) {
    const there = state.status.attached.filter(([, name]) => name === quantity);
    return there.map(([module]) => module);
  }

  /** @param {string} text */
  function say(outcome, mark, text) {
    setAttribute(el, "data-state", outcome);
    setText(sign, mark);
    setText(words, text);
    show.hidden = true;
  }

  function draw() {
    const series = [...state.selection.series, ...undrawn()];
    selection.change({ series, home: state.selection.home || followed.quantity });
  }

  return { el, follow, mended };
}
