/** One breakpoint: a tick arms it, its underlined number edits, × removes; right: how it stands. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { grouped, significant } from "../../format.js";

/**
 * @typedef {{
 *   edit: (fields: { armed: boolean | null, number: number | null }) => void,
 *   remove: () => void,
 * }} BreakCalls
 */

/** @type {Record<string, string>} */
const SIGNS = { series: "nbp-flag", alert: "nbp-severe" };

/** @param {BreakCalls} calls */
export function createBreakRow({ edit: change, remove }) {
  const tick = element("input", { type: "checkbox", "aria-label": "Armed" });
  const sign = element("i", { "aria-hidden": "true" });
  const [before, after] = [element("span"), element("span")];
  const number = element("button", { class: "nbp-number", type: "button", title: "Change it" });
  const field = element("input", {
    class: "nbp-number-field",
    type: "text",
    inputmode: "decimal",
    "aria-label": "Its number",
    hidden: "",
  });
  const words = element("span", { class: "nbp-break-text" }, before, number, field, after);
  const stands = element("span", { class: "nbp-soft" });
  const gone = element("button", { class: "nbp-remove", type: "button", title: "Remove" }, "×");
  const el = element("div", { class: "nbp-break" }, tick, sign, words, stands, gone);
  /** @type {BreakRow | null} */
  let told = null;
  /** @type {boolean | null} */
  let wanted = null; // what was ticked, until the kernel says it

  tick.addEventListener("change", arm);
  gone.addEventListener("click", remove);
  number.addEventListener("click", edit);
  field.addEventListener("keydown", pressed);
  field.addEventListener("blur", leave);

  function arm() {
    wanted = tick.checked;
    change({ armed: wanted, number: null });
  }

  function edit() {
    field.value = String(told?.number);
    setHidden(number, true);
    setHidden(field, false);
    field.focus();
    field.select();
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (!["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation(); // Escape takes back what was typed, and leaves the dialog open
    const value = Number(field.value.trim().replace(",", "."));
    const isNew = event.key === "Enter" && field.value.trim() && Number.isFinite(value);
    if (event.key === "Enter" && !isNew) return setAttribute(field, "aria-invalid", true);
    if (isNew && value !== told?.number) change({ armed: null, number: value });
    leave();
    number.focus();
  }

  function leave() {
    setAttribute(field, "aria-invalid", null);
    setHidden(field, true);
    setHidden(number, !told || told.number === null);
  }

  return {
    el,
    /**
     * @param {BreakRow} row
     * @param {boolean} refused
     */
    describe(row, refused) {
      if (row !== told || refused) wanted = null;
      told = row;
      const shown = row.number === null ? "" : numberText(row.kind, row.number);
      tick.checked = wanted ?? row.armed;
      const [first, second] = around(row);
      setText(before, first);
      setText(after, second);
      setText(number, shown);
      if (field.hidden) setHidden(number, row.number === null);
      setText(stands, standing(row));
      setAttribute(el, "title", row.note || null);
      setAttribute(el, "data-break", row.id);
      setAttribute(el, "data-pauses", row.pauses ? "true" : null);
      setAttribute(el, "data-armed", row.armed);
      setAttribute(el, "data-kind", row.kind);
      setAttribute(sign, "class", SIGNS[row.kind] ?? null);
    },
  };
}

/**
 * The words before its number and those after it.
 * @param {BreakRow} row
 */
function around({ kind, text, number, sign, module, quantity }) {
  if (number === null) return [text, ""];
  if (kind === "step") return ["at step ", ""];
  const series = module === "(root)" ? quantity : `${module} · ${quantity}`;
  const rest = text.match(/ for \d+ rows.*| ?, before the update$/)?.[0] ?? "";
  return [`${series} ${sign} `, rest];
}

/**
 * @param {string} kind
 * @param {number} number
 */
function numberText(kind, number) {
  return kind === "step" ? grouped(number) : significant(number);
}

/** @param {BreakRow} row */
function standing({ armed, pauses, last_step: step, note }) {
  if (pauses) return "paused now";
  if (!armed) return "off";
  if (step >= 0) return `step ${grouped(step)}`;
  return note ? "elsewhere" : "not yet";
}
