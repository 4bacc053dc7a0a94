/** Result of a click, as text. */

import { queuedText } from "../../controls/queued.js";
import { grouped } from "../../format.js";

/**
 * [state, text] of the ticket with this id; nothing where none was asked for.
 * @param {PanelState} state
 * @param {string} id
 * @returns {[string, string]}
 */
export function ticketText(state, id) {
  if (!id) return ["", ""];
  const row = state.status.tickets.find((one) => one.id === id);
  if (!row) return ["sent", "…"];
  if (row.state === "queued") return ["queued", queuedText(state, `queued ${grouped(row.queued_step)}`)];
  if (row.state === "refused") return ["refused", row.text];
  const queued = row.queued_step < row.applied_step ? `queued ${grouped(row.queued_step)}, ` : "";
  return ["applied", `✓ ${queued}applied at step ${grouped(row.applied_step)}`];
}
