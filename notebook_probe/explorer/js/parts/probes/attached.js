/** "● 63" beside the search: all that is attached, by quantity; schedules, detaching, presets. */

import { createContentOf } from "../../dialogs/content.js";
import { element, listener, setAttribute, setChildren, setGreyed, setHidden, setText } from "../../dom.js";
import { THIN_SPACE, grouped, significant } from "../../format.js";
import { valueAt, valueOr } from "../../maps.js";
import { probesText } from "../../probes.js";
import { createTicket } from "../ticket.js";
import { createAttachedRow } from "./attached_row.js";
import { probeGroups } from "./groups.js";

/** @type {Record<string, number>} */
const ARROWS = { ArrowDown: 1, ArrowUp: -1 };
const MOST_ROWS = 80;

/** @param {PanelParts} parts */
export function createAttached(parts) {
  const { state, dialogs, link, signal } = parts;
  const button = element("button", {
    type: "button",
    class: "nbp-attached-count",
    "data-action": "attached",
    "aria-haspopup": "dialog",
    "aria-expanded": "false",
  });
  const dialog = createContentOf({ dialogs, anchor: button, label: "Attached probes", create: createContent });

  const listen = listener(signal);
  listen(button, "click", () => dialog.open()?.describe());
  for (const topic of ["status", "tickets", "model", "probes"]) state.on(topic, refresh);

  function refresh() {
    const n = state.probes.rows.length;
    setHidden(button, !state.model.live);
    if (button.dataset.n !== String(n)) {
      button.dataset.n = String(n);
      button.replaceChildren(element("i", { class: "nbp-blue-dot", "aria-hidden": "true" }), grouped(n));
    }
    setAttribute(button, "title", `${probesText(n)} attached: schedules, costs, presets (t)`);
    setAttribute(button, "aria-label", `${probesText(n)} attached`);
    dialog.shown?.describe();
  }

  function createContent() {
    const count = element("span", { class: "nbp-soft" });
    const search = element("input", {
      type: "search",
      placeholder: "Find: quantity or module",
      "aria-label": "Find among the attached probes",
      spellcheck: "false",
    });
    const heads = ["", "quantity", "where", "schedule", "of a step", "last at", ""];
    const list = element("div", { class: "nbp-attached-list" });
    const empty = element("p", { class: "nbp-soft" });
    const flight = element("p", { class: "nbp-soft" });
    const presets = element("span", { class: "nbp-presets" });
    const ticket = createTicket(parts);
    const all = element(
      "button",
      { type: "button", class: "nbp-link", "data-action": "detach-all" },
      "detach all",
    );
    const el = element(
      "div",
      { class: "nbp-sections nbp-attached" },
      element("header", { role: "none" }, element("span", {}, element("h3", {}, "Attached"), " ", count), search),
      element(
        "section",
        { class: "nbp-plain" },
        element("div", { class: "nbp-attached-row nbp-soft" }, ...heads.map((text) => element("span", {}, text))),
        list,
        empty,
        flight,
      ),
      element("footer", { role: "none" }, presets, all, ticket.el),
    );
    /** @type {Map<string, ReturnType<typeof createAttachedRow>>} */
    const rows = new Map(); // quantity and schedule -> row
    /** @type {Map<string, ReturnType<typeof presetButton>>} */
    const offers = new Map(); // preset -> its button
    const offering = element("span", { class: "nbp-soft" }, "Add a preset");

    listen(search, "input", describe);
    listen(all, "click", () => {
      const where = [...new Set(state.probes.rows.map((row) => row.module))];
      ticket.follow([link.ask("detach", { where, quantity: "" })]);
    });
    listen(el, "keydown", pressed);

    function describe() {
      const groups = probeGroups(state);
      const quantities = new Set(groups.map((group) => group.quantity));
      const of = quantities.size === 1 ? "1 quantity" : `${grouped(quantities.size)} quantities`;
      setText(count, `${probesText(state.probes.rows.length)} of ${of}`);
      showRows(groups);
      setText(flight, state.parts.probes.flight);
      showPresets();
      setHidden(all, !groups.length);
      setGreyed(all, state.status.can.detach ?? "");
      ticket.describe();
    }

    /** @param {ProbeGroup[]} groups */
    function showRows(groups) {
      const query = search.value.trim().toLowerCase();
      const found = groups.filter(
        ({ quantity, rows: probes }) =>
          quantity.includes(query) || probes.some((row) => row.module.toLowerCase().includes(query)),
      );
      const keys = found.slice(0, MOST_ROWS).map((group) => {
        const key = `${group.quantity} ${group.schedule}`;
        valueOr(rows, key, () => createAttachedRow(group, parts, ticket)).describe(group, query);
        return key;
      });
      for (const key of rows.keys()) if (!keys.includes(key)) rows.delete(key);
      setChildren(list, keys.map((key) => valueAt(rows, key).el));
      const rest = found.length - keys.length;
      const none = groups.length ? "Nothing attached matches." : "Nothing is attached.";
      setText(empty, rest > 0 ? `${grouped(rest)} more: search to narrow` : found.length ? "" : none);
    }

    function showPresets() {
      const told = state.parts.probes.presets;
      const nodes = told.map((preset) => {
        const { act, cost } = valueOr(offers, preset.name, () => presetButton(preset.name));
        setText(cost, preset.percent === null ? "" : ` ${significant(preset.percent, 2)}${THIN_SPACE}%`);
        setGreyed(act, state.status.can.preset ?? "", preset.about);
        return act;
      });
      setChildren(presets, [offering, ...nodes]);
    }

    /** @param {string} name */
    function presetButton(name) {
      const cost = element("span", { class: "nbp-soft" });
      const act = element("button", { type: "button", "data-preset": name }, name, cost);
      listen(act, "click", () => ticket.follow([link.ask("preset", { name })]));
      return { act, cost };
    }

    /**
     * Arrows from row to row; what stands in a row is reached by Tab.
     * @param {KeyboardEvent} event
     */
    function pressed(event) {
      const way = ARROWS[event.key];
      if (!way || event.target.matches("input:not([type=search])")) return;
      event.preventDefault();
      event.stopPropagation();
      const nodes = [...list.children];
      const at = nodes.findIndex((node) => node.matches(":focus-within"));
      const next = nodes[at + way];
      (next?.querySelector("[data-role=edit-schedule]") ?? search).focus();
    }

    return { el, describe };
  }

  refresh();
  return { el: button, open: () => button.click() };
}
