/** The list of breakpoints: each armed, edited and removed in its row, and a new one below. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { valueOr } from "../../maps.js";
import { createBreakRow } from "./break_row.js";
import { createNewBreak } from "./new_break.js";
import { ticketText } from "./ticket.js";

/** @param {PanelParts} parts */
export function createPauseWhen(parts) {
  const { state, link } = parts;
  const list = element("div", { class: "nbp-break-rows" });
  const ticket = element("div", { class: "nbp-ticket", role: "status" });
  const fresh = createNewBreak({ ...parts, follow });
  const el = element(
    "div",
    { class: "nbp-pause-when" },
    element(
      "div",
      { class: "nbp-dialog-head" },
      element("h3", {}, "Pause when"),
      element("span", { class: "nbp-soft" }, "between two steps"),
    ),
    list,
    fresh.el,
    ticket,
  );
  /** @type {Map<number, ReturnType<typeof createBreakRow>>} */
  const rows = new Map(); // id -> row
  let asked = "";
  const life = new AbortController();
  for (const topic of ["status", "tickets"]) {
    state.on(topic, () => !life.signal.aborted && refresh());
  }

  /** @param {string} id */
  function follow(id) {
    asked = id;
    refresh();
  }

  /** @param {number} which */
  function rowOf(which) {
    return createBreakRow({
      edit: (fields) => follow(link.ask("edit_break", { which, ...fields })),
      remove: () => follow(link.ask("unbreak", { which })),
    });
  }

  function refresh() {
    const told = state.parts.breaks.rows;
    const [outcome, text] = ticketText(state, asked);
    for (const [id, row] of rows) {
      if (told.some((one) => one.id === id)) continue;
      row.el.remove();
      rows.delete(id);
    }
    for (const one of told) {
      const row = valueOr(rows, one.id, () => rowOf(one.id));
      if (row.el.parentNode !== list) list.append(row.el);
      row.describe(one, outcome === "refused");
    }
    setHidden(list, !told.length);
    fresh.refresh();
    setAttribute(ticket, "data-state", outcome);
    setText(ticket, text);
  }

  refresh();
  return {
    el,
    refresh,
    close() {
      life.abort();
      fresh.close();
    },
  };
}
