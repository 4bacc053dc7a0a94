/** Alerts, one per line, with consequences below each cause; hovering marks an alert in the plots. */

import { arrange, element, listener, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { valueOr } from "../../maps.js";
import { listedCauses } from "./both.js";
import { createAlertLine } from "./line.js";
import { createRemarkList } from "./remark_list.js";
import { alertsText, causesText } from "./words.js";

/**
 * `about` stands at the right of the head.
 * @param {PanelParts} parts
 * @param {HTMLElement} about
 */
export function createAlertList(parts, about) {
  const { state, signal } = parts;
  const list = element("div", { class: "nbp-alerts", role: "list" });
  const earlier = element("p", { class: "nbp-soft nbp-earlier", hidden: "" });
  const remarks = createRemarkList(state);
  const scroll = element("div", { class: "nbp-alerts-scroll" }, earlier, list, remarks.el);
  const count = element("span", { class: "nbp-soft" });
  const el = element("div", {}, element("div", { class: "nbp-alerts-head" }, count, about), scroll);
  /** @type {Map<string, AlertLine>} */
  const lines = new Map(); // key of a finding -> its line
  /** @type {AlertLine | null} */
  let pointed = null;
  /** @type {unknown[]} */
  let known = []; // what the lines were filled from
  /** @type {AlertLine | null} */
  let newest = null; // the line of the newest cause

  const listen = listener(signal);
  listen(list, "pointerover", (event) => point(lineOf(event.target)));
  listen(list, "pointerleave", () => point(null));
  listen(list, "focusin", (event) => focused(lineOf(event.target)));
  listen(list, "focusout", () => point(null));
  listen(list, "keydown", pressed);

  /** Only what is new is put in, so that what has the focus keeps it. */
  function fill() {
    remarks.fill();
    const { alerts, findings, status, model, both } = state;
    const asked = [status.attached, status.can.attach, state.parts.rules, state.parts.looks];
    const facts = [alerts, both, state.parts.left, model, status.recorded, ...asked];
    if (known.length && facts.every((fact, k) => fact === known[k])) return;
    known = facts;
    const causes = listedCauses(state);
    const nodes = causes.flatMap((one) => {
      const cause = describe(one, null);
      newest = cause;
      return [cause, ...one.below.map((below) => describe(below, cause))].map((line) => line.el);
    });
    arrange(list, nodes);
    for (const [key, one] of lines) if (one.el.parentNode !== list) lines.delete(key);
    setText(count, countText(state, causes));
    const n = findings.length ? Math.min(...findings.map(({ first }) => first)) : 0;
    setHidden(earlier, !n);
    setText(earlier, `${grouped(n)} earlier ones: run.alerts lists them all`);
  }

  /**
   * @param {ListedFinding} finding
   * @param {AlertLine | null} cause
   */
  function describe(finding, cause) {
    const { key } = finding;
    const line = valueOr(lines, key, () => createAlertLine(parts, refold));
    line.describe(finding, cause);
    return line;
  }

  function refold() {
    for (const { el: line, cause } of lines.values()) setHidden(line, cause !== null && !cause.fold.isOpen());
  }

  /** @param {HTMLElement} node */
  function lineOf(node) {
    const el = node.closest(".nbp-alert");
    return [...lines.values()].find((line) => line.el === el) ?? null;
  }

  /**
   * Its step goes through both plots, its rows are outlined.
   * @param {AlertLine | null} line
   */
  function point(line) {
    if (line === pointed) return;
    pointed = line;
    const alert = line?.alert;
    const { step, modules } = alert ?? { step: 0, modules: [] };
    state.cursor = alert ? { step, row: null, from: "alert", modules } : state.pinned;
    state.emit("cursor");
  }

  /** @param {AlertLine | null} line */
  function focused(line) {
    if (!line) return;
    for (const one of lines.values()) one.el.tabIndex = one === line ? 0 : -1;
    point(line);
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const line = lineOf(event.target);
    if (!line || event.target.matches("input")) return;
    const own = event.target === line.el;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") neighbour(line, event.key)?.focus();
    else if (own && event.key === " ") line.toggle();
    else if (own && event.key === "Enter") line.show();
    else if (event.key === "ArrowRight" && line.fold.open(true)) return;
    else if (event.key === "ArrowLeft" && (line.cause ?? line).fold.open(false)) (line.cause ?? line).el.focus();
    else return;
    event.preventDefault();
  }

  /**
   * @param {AlertLine} line
   * @param {string} key
   */
  function neighbour({ el: from }, key) {
    const all = [...list.querySelectorAll(".nbp-alert:not([hidden])")];
    return all[all.indexOf(from) + (key === "ArrowDown" ? 1 : -1)];
  }

  return {
    el,
    fill,
    leave: () => point(null),
    focusNewest: () => newest?.el.focus(),
    scrollToNewest() {
      if (newest && newest.el !== list.firstChild) scroll.scrollTop = newest.el.offsetTop;
    },
  };
}

/**
 * @param {Pick<PanelState, "alerts" | "both" | "parts">} state
 * @param {ListedFinding[]} causes
 */
function countText({ alerts, both, parts }, causes) {
  const own = causes.filter(({ left }) => !left);
  const before = both ? [`${alertsText(parts.left.rows.length)} before`] : [];
  return [...(own.length ? [`${alertsText(alerts.length)}, ${causesText(own.length)}`] : []), ...before].join(" · ");
}
