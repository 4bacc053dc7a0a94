/** Result of a click, as text next to it: queued, applied at a step, or the reason of a refusal. */

import { element, setAttribute, setText } from "../dom.js";
import { queuedText } from "../controls/queued.js";
import { grouped } from "../format.js";

/**
 * `follow(ids, done)` says what became of these requests; call `describe` at each status.
 * @param {Pick<PanelParts, "state">} parts
 */
export function createTicket({ state }) {
  const el = element("span", { class: "nbp-ticket", role: "status" });
  /** @type {string[]} */
  let followed = []; // ids of the requests of one click
  /** @type {((outcome: string) => void) | null} */
  let settled = null;

  /**
   * @param {string} outcome
   * @param {string} text
   */
  function say(outcome, text) {
    setAttribute(el, "data-state", outcome);
    setText(el, text);
  }

  function describe() {
    const found = followed.map((id) => state.status.tickets.find((one) => one.id === id));
    const rows = found.filter((row) => row !== undefined);
    if (!rows.length) return;
    const refused = rows.find((row) => row.state === "refused");
    if (refused) return end("refused", refused.text);
    const last = rows[rows.length - 1];
    const queued = `queued ${grouped(last.queued_step)}`;
    if (rows.some((row) => row.state === "queued")) return say("queued", queuedText(state, queued));
    return end("applied", `✓ ${queued}, applied at step ${grouped(last.applied_step)}`);
  }

  /**
   * @param {string} outcome
   * @param {string} text
   */
  function end(outcome, text) {
    say(outcome, text);
    const told = settled;
    settled = null;
    told?.(outcome);
  }

  return {
    el,
    say,
    describe,
    /**
     * @param {string[]} ids
     * @param {((outcome: string) => void) | null} [done]
     */
    follow(ids, done = null) {
      followed = ids;
      settled = done;
      say("sent", "sent, waiting for the kernel");
    },
    /** Something is being changed: what was said of the last click is over. */
    clear() {
      followed = [];
      settled = null;
      say("", "");
    },
  };
}
