/** Link with the number of active, waiting and failed alert rules; a list opens below it. */

import { element, setAttribute, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { hasEnded } from "../../state.js";
import { createMessages } from "../messages/messages.js";
import { createPresetOffer } from "./preset_offer.js";
import { WAITS } from "./waits.js";

const OFF = "off: ";

/**
 * A link that says how many watch, and a button that attaches what the others wait for.
 * @param {PanelParts} parts
 */
export function createRulesWatch(parts) {
  const { state, dialogs, signal } = parts;
  const link = element("button", {
    class: "nbp-link",
    type: "button",
    "data-action": "rules",
    "aria-haspopup": "dialog",
    "aria-expanded": "false",
    title: "Active rules, and what the others wait for",
  });
  const list = element("div", { class: "nbp-rules" });
  const messages = createMessages(parts).el;
  const el = element("span", { class: "nbp-rules-watch" }, link, createPresetOffer(parts).el, messages);
  link.addEventListener("click", open, { signal });
  for (const topic of ["rules", "status"]) state.on(topic, refresh);

  function open() {
    fill();
    dialogs.open({ anchor: link, label: "Alert rules", content: list });
  }

  function fill() {
    const groups = grouping(state.parts.rules.rules);
    /** @type {Array<[string, HTMLElement[]]>} */
    const blocks = [
      ["Waiting for a series", groups.waiting.map((one) => ruleRow(one, one.state.slice(WAITS.length)))],
      ["Turned off after an error", groups.off.map((one) => ruleRow(one, one.state.slice(OFF.length)))],
      ["Active", groups.on.map((one) => ruleRow(one, one.summary))],
    ];
    const shown = blocks.filter(([, rows]) => rows.length);
    list.replaceChildren(...shown.flatMap(([title, rows]) => [element("h3", {}, title), ...rows]));
  }

  function refresh() {
    setText(link, watchText(state.parts.rules.rules, hasEnded(state.status)));
    if (list.isConnected) fill();
  }

  refresh();
  return el;
}

/** @param {RuleRow[]} rules */
function grouping(rules) {
  return {
    on: rules.filter(({ state }) => state === "on"),
    waiting: rules.filter(({ state }) => state.startsWith(WAITS)),
    off: rules.filter(({ state }) => state.startsWith(OFF)),
  };
}

const PRESENT = ["rule watches", "rules watch", "waits", "wait"];
const PAST = ["rule watched", "rules watched", "waited", "waited"];

/**
 * "17 rules watch, 4 wait for a series"; "" where none is followed.
 * @param {RuleRow[]} rules
 * @param {boolean} [isOver]
 */
export function watchText(rules, isOver = false) {
  const { on, waiting, off } = grouping(rules);
  if (!on.length && !waiting.length && !off.length) return "";
  const [one, many, waits, wait] = isOver ? PAST : PRESENT;
  const parts = [`${grouped(on.length)} ${on.length === 1 ? one : many}`];
  if (waiting.length) parts.push(`${grouped(waiting.length)} ${waiting.length === 1 ? waits : wait} for a series`);
  if (off.length) parts.push(`${grouped(off.length)} turned off`);
  return parts.join(", ");
}

/**
 * @param {RuleRow} rule
 * @param {string} detail
 */
function ruleRow(rule, detail) {
  const row = element("div", { class: "nbp-rule-row" }, element("code", {}, rule.name));
  row.append(element("span", { class: "nbp-soft" }, detail));
  setAttribute(row, "title", rule.summary || null);
  return row;
}
