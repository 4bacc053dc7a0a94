/** Result of one request as text, next to its control. */

import { queuedText } from "../controls/queued.js";
import { element, setAttribute, setText } from "../dom.js";
import { grouped } from "../format.js";

/**
 * `follow(id, done)`: "queued 412", then "✓ <done> at step 413", or why not.
 * @param {Pick<PanelParts, "state" | "signal">} parts
 */
export function createTicket({ state, signal }) {
  const el = element("span", { class: "nbp-ticket", role: "status", "data-state": "" });
  /** @type {{ id: string, done: string } | null} */
  let followed = null; // { id, done }
  for (const topic of ["status", "tickets"]) state.on(topic, refresh);
  signal.addEventListener("abort", () => (followed = null));

  /**
   * @param {string} id
   * @param {string} done
   */
  function follow(id, done) {
    followed = { id, done };
    say("sent", "…");
  }

  /**
   * @param {string} outcome
   * @param {string} text
   */
  function say(outcome, text) {
    setAttribute(el, "data-state", outcome);
    setText(el, text);
  }

  function refresh() {
    const request = followed;
    const row = request && state.status.tickets.find((one) => one.id === request.id);
    if (!row) return;
    if (row.state === "queued") say("queued", queuedText(state, `queued ${grouped(row.queued_step)}`));
    else if (row.state === "refused") say("refused", row.text);
    else say("applied", `✓ ${request.done} at step ${grouped(row.applied_step)}`);
    setAttribute(el, "title", row.text || null);
  }

  return { el, follow, say };
}
