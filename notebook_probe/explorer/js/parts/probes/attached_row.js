/** One attached quantity: its schedule edited in place, what it costs, its modules, and detaching. */

import { element, listener, setAttribute, setGreyed, setHidden, setText } from "../../dom.js";
import { THIN_SPACE, grouped, significant } from "../../format.js";
import { seriesName } from "../../names.js";
import { probeText } from "../../probes.js";
import { hasSeries } from "../../state.js";
import { briefly, costOn } from "./schedules.js";

const DEAR_PERCENT = 2.5;
const MOST_MODULES = 60;

const LEAST_PERCENT = 0.01; // of less nobody wants the digits

/** @param {number} value */
function percentText(value) {
  if (!value) return "–";
  return `${value < LEAST_PERCENT ? `< ${LEAST_PERCENT}` : significant(value, 2)}${THIN_SPACE}%`;
}

/**
 * `ticket` is that of the list: detaching is told there, a schedule that is refused beside its field.
 * @param {ProbeGroup} first
 * @param {Pick<PanelParts, "state" | "link" | "selection" | "signal">} parts
 * @param {{ follow: (ids: string[]) => void }} ticket
 */
export function createAttachedRow(first, { state, link, selection, signal }, ticket) {
  const fold = element("button", {
    type: "button",
    class: "nbp-twist",
    "aria-expanded": "false",
    "aria-label": "Show modules",
  });
  const name = element("code");
  const where = element("span", { class: "nbp-soft nbp-cut" });
  const edit = element("button", { type: "button", class: "nbp-editable", "data-role": "edit-schedule" });
  const field = element("input", { type: "text", spellcheck: "false", "aria-label": "Schedule", hidden: "" });
  const beside = element("span", { class: "nbp-soft", role: "status" });
  const note = element("span", { class: "nbp-why" });
  const cost = element("span");
  const last = element("span", { class: "nbp-soft" });
  const detach = element(
    "button",
    { type: "button", class: "nbp-link", "data-action": "detach-row", title: "Detach" },
    "×",
  );
  const modules = element("div", { class: "nbp-attached-modules", hidden: "" });
  const line = element(
    "div",
    { class: "nbp-attached-row" },
    fold,
    name,
    where,
    element("span", { class: "nbp-attached-when" }, edit, field, beside, note),
    cost,
    last,
    detach,
  );
  const el = element("div", { class: "nbp-attached-item" }, line, modules);
  let group = first;
  let asked = ""; // id of the request for another schedule

  const listen = listener(signal);
  listen(edit, "click", begin);
  listen(field, "input", tryOut);
  listen(field, "keydown", typed);
  listen(field, "blur", () => !asked && end());
  listen(fold, "click", () => unfold(modules.hidden));
  listen(detach, "click", takeOff);
  listen(el, "keydown", (event) => {
    if (event.key === "Delete" && !event.target.matches("input")) takeOff();
  });

  function begin() {
    field.value = group.schedule;
    setHidden(edit, true);
    setHidden(field, false);
    tryOut();
    field.focus();
    field.select();
  }

  function end() {
    const had = field.matches(":focus");
    setHidden(field, true);
    setHidden(edit, false);
    say("", "");
    if (had) edit.focus();
  }

  function tryOut() {
    asked = "";
    const left = costOn(field.value, group, group.everyStep);
    say("", left === null ? "" : percentText(left));
  }

  /** @param {KeyboardEvent} event */
  function typed(event) {
    if (event.key === "Enter") ask();
    else if (event.key !== "Escape") return;
    else end();
    event.preventDefault();
    event.stopPropagation();
  }

  function ask() {
    const schedule = field.value.trim();
    if (!schedule) return say("refused", "say when, such as every(10)");
    if (schedule === group.schedule) return end();
    const where = group.rows.map((row) => row.module);
    asked = link.ask("reschedule", { where, quantity: group.quantity, schedule });
    return say("sent", "…");
  }

  function takeOff() {
    const where = group.rows.map((row) => row.module);
    ticket.follow([link.ask("detach", { where, quantity: group.quantity })]);
  }

  /**
   * @param {string} outcome
   * @param {string} text
   * @param {string | null} [title]
   */
  function say(outcome, text, title = null) {
    setAttribute(beside, "data-state", outcome);
    setText(beside, text);
    setAttribute(beside, "title", title);
    setAttribute(field, "aria-invalid", outcome === "refused" ? "true" : null);
    makeRoom();
  }

  /** For words the column of the cost is theirs too. */
  function makeRoom() {
    const says = group.note || field.getAttribute("aria-invalid");
    line.classList.toggle("nbp-wordy", Boolean(says));
  }

  function answer() {
    const row = state.status.tickets.find((one) => one.id === asked);
    if (row?.state === "refused") say("refused", briefly(row.text), row.text);
    if (row?.state !== "applied") return;
    asked = "";
    end();
  }

  /** @param {boolean} open */
  function unfold(open) {
    setHidden(modules, !open);
    setAttribute(fold, "aria-expanded", open);
    if (open) listModules();
  }

  function listModules() {
    const shown = group.rows.slice(0, MOST_MODULES).map(moduleRow);
    const rest = group.rows.length - shown.length;
    const more = rest > 0 ? [element("span", { class: "nbp-soft" }, `${grouped(rest)} more`)] : [];
    modules.replaceChildren(...shown, ...more);
  }

  /** @param {ProbeRow} row */
  function moduleRow(row) {
    const node = element(
      "button",
      { type: "button", class: "nbp-attached-module", title: `Draw ${seriesName(row.module, row.quantity)}` },
      element("code", {}, row.module),
      element("span", { class: "nbp-soft" }, probeText(row)),
    );
    node.addEventListener("click", () => {
      const drawable = state.status.recorded[row.quantity]?.includes(row.module);
      if (drawable && !hasSeries(state.selection, row.module, row.quantity)) {
        selection.add(row.module, row.quantity);
      }
    });
    return node;
  }

  return {
    el,
    /**
     * @param {ProbeGroup} told
     * @param {string} query
     */
    describe(told, query) {
      const news = group.rows !== told.rows;
      group = told;
      setText(name, told.quantity);
      setAttribute(el, "data-quantity", told.quantity);
      setText(where, told.where);
      setText(edit, told.schedule);
      setHidden(edit, Boolean(told.note) || !field.hidden);
      setText(note, told.note);
      setAttribute(note, "title", told.note || null);
      setHidden(note, !told.note || !field.hidden);
      setText(cost, told.note ? "" : percentText(told.percent));
      cost.classList.toggle("nbp-dear", told.percent >= DEAR_PERCENT);
      setText(last, told.step >= 0 ? grouped(told.step) : "never");
      setGreyed(edit, state.status.can.reschedule ?? "", "Change the schedule");
      setGreyed(detach, state.status.can.detach ?? "", "Detach");
      makeRoom();
      if (asked) answer();
      const wanted = query && !told.quantity.includes(query);
      if (wanted && modules.hidden) unfold(true);
      else if (!modules.hidden && news) listModules();
    },
  };
}
