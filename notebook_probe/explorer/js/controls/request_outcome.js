/** Result of one click on Attach or Detach, in one line. */

import { element, setAttribute, setText } from "../dom.js";
import { grouped } from "../format.js";
import { hasSeries, isVector } from "../state.js";
import { queuedText } from "./queued.js";

/** @typedef {{ id: string, verb: string, where: string[], quantity: string }} FollowedRequest */

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
  /** @type {FollowedRequest | null} */
  let followed = null; // { id, verb, where, quantity }

  show.addEventListener("click", draw, { signal });
  for (const topic of ["status", "tickets", "selection"]) state.on(topic, refresh);

  /**
   * @param {string} id
   * @param {string} verb
   * @param {string[]} where
   * @param {string} quantity
   */
  function follow(id, verb, where, quantity) {
    followed = { id, verb, where, quantity };
    say("sent", "…", "sent, waiting for the kernel");
  }

  function refresh() {
    const request = followed;
    const row = request && state.status.tickets.find((one) => one.id === request.id);
    if (!row) return;
    const queued = `queued ${grouped(row.queued_step)}`;
    if (row.state === "queued") say("queued", "…", queuedText(state, `queued at step ${grouped(row.queued_step)}`));
    else if (row.state === "refused") say("refused", "✕", row.text);
    else say("applied", "✓", `${queued}, ${request.verb} at step ${grouped(row.applied_step)}`);
    setAttribute(el, "title", row.text || null);
    const attached = row.state === "applied" && request.verb === "attached";
    const drawable = !isVector(state, request.quantity);
    show.hidden = !attached || !drawable || !undrawn(request).length;
  }

  /** A refused request is sent again in another form. */
  function mended() {
    if (el.getAttribute("data-state") !== "refused") return;
    followed = null;
    setAttribute(el, "title", null);
    say("", "", "");
  }

  /**
   * The first of the attached series that are not among the lines yet.
   * @param {FollowedRequest} request
   * @returns {Array<[string, string]>}
   */
  function undrawn({ where, quantity }) {
    const asked = where.length ? where : placesOf(quantity);
    const few = asked.slice(0, DRAWN_AT_ONCE).filter((module) => !hasSeries(state.selection, module, quantity));
    return few.map((module) => [module, quantity]);
  }

  /** @param {string} quantity */
  function placesOf(quantity) {
    const there = state.status.attached.filter(([, name]) => name === quantity);
    return there.map(([module]) => module);
  }

  /**
   * @param {string} outcome
   * @param {string} mark
   * @param {string} text
   */
  function say(outcome, mark, text) {
    setAttribute(el, "data-state", outcome);
    setText(sign, mark);
    setText(words, text);
    show.hidden = true;
  }

  function draw() {
    if (!followed) return;
    const series = [...state.selection.series, ...undrawn(followed)];
    selection.change({ series, home: state.selection.home || followed.quantity });
  }

  return { el, follow, mended };
}
