/** The list of breakpoints: each armed, edited and removed in its row, and a new one below. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { createBreakRow } from "./break_row.js";
import { createNewBreak } from "./new_break.js";
import { ticketText } from "./ticket.js";

/** @param {PanelParts} parts */
export function createPauseWhen(parts) {
  const { state, link } = parts;
  const list = element("div", { class: "nbp-break-rows" });
  const ticket = element("div", { class: "nbp-ticket", role: "status" });
  const follow = (id) => (asked = id) && refresh();
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
  const rows = new Map(); // id -> row
  let asked = "";
  const life = new AbortController();
  for (const topic of ["status", "tickets"]) {
    state.on(topic, () => !life.signal.aborted && refresh());
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
      if (!rows.has(one.id)) {
        const ask = (type, fields) => follow(link.ask(type, { which: one.id, ...fields }));
        rows.set(one.id, createBreakRow(ask));
        list.append(rows.get(one.id).el);
      }
      rows.get(one.id).describe(one, outcome === "refused");
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
