/** Cost of watching, in the bar; its dialog has the most expensive probes, savings, and a budget. */

import { createContentOf } from "../../dialogs/content.js";
import { element, listener, setChildren, setGreyed, setHidden, setText } from "../../dom.js";
import { THIN_SPACE, grouped, significant } from "../../format.js";
import { valueAt } from "../../maps.js";
import { createTicket } from "../ticket.js";
import { createDearRow, createRestRow, offerOf, percentText } from "./dear_row.js";
import { namesOf, probeGroups, sumOf } from "./groups.js";

const DEAR_PERCENT = 10;
const N_DEAREST = 3;
const LEAST_STEPS = 20;
const CHOSEN = "schedules that were chosen are never stretched: make them sparser above";

/**
 * `openList` opens the list of all that is attached.
 * @param {PanelParts} parts
 * @param {() => void} openList
 */
export function createCost(parts, openList) {
  const { state, dialogs, link, signal } = parts;
  const value = element("b");
  const button = element(
    "button",
    {
      class: "nbp-bar-word nbp-cost",
      type: "button",
      "data-action": "probes",
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
      title: "Time spent in probes and rows in % of step time, and how to reduce it",
    },
    element("span", { class: "nbp-soft" }, "probes "),
    value,
    element("i", { class: "nbp-chevron", "aria-hidden": "true" }),
  );
  const dialog = createContentOf({ dialogs, anchor: button, label: "What probes cost", create: createContent });

  const listen = listener(signal);
  listen(button, "click", () => dialog.open()?.describe());
  for (const topic of ["status", "tickets", "probes", "model"]) state.on(topic, refresh);

  function refresh() {
    const { cost_percent: percent } = state.status;
    setHidden(button, percent === null || !state.model.live);
    setText(value, percentText(percent ?? 0));
    button.classList.toggle("nbp-dear", (percent ?? 0) >= DEAR_PERCENT);
    dialog.shown?.describe();
  }

  function createContent() {
    const title = element("h3");
    const account = element("span", { class: "nbp-soft" });
    const table = element("div", { class: "nbp-dearest" });
    const below = element("input", { type: "checkbox", "data-role": "budget" });
    const limit = element("input", {
      type: "text",
      inputmode: "decimal",
      value: "5",
      "aria-label": "Per cent of step time",
      "data-role": "percent",
    });
    const budget = element(
      "span",
      { class: "nbp-budget" },
      element("label", {}, below, " keep below"),
      limit,
      "% ",
      element("span", { class: "nbp-soft" }, "by measuring the most expensive ones less often"),
    );
    const all = element("button", { type: "button", class: "nbp-main", "data-action": "all-sparser" });
    const ticket = createTicket(parts);
    const note = element("p", { class: "nbp-soft nbp-wide", role: "status" });
    const el = element(
      "div",
      { class: "nbp-sections nbp-cost-account" },
      element("header", { role: "none" }, title, account),
      element("section", { class: "nbp-plain" }, table),
      element("footer", { role: "none" }, budget, all, note, ticket.el),
    );
    const waiting = element("span", { class: "nbp-soft nbp-wide" });
    const words = ["quantity", "where", "now", "", "", "instead"];
    const heads = words.map((word) => element("span", { class: "nbp-soft" }, word));
    /** @type {Map<string, ReturnType<typeof createDearRow>>} */
    const rows = new Map(); // quantity and schedule -> its line
    const others = createRestRow({ open: openList, signal });
    const keeping = createRestRow({ open: openList, signal });
    /** @type {(group: ProbeGroup) => string} */
    const keyOf = ({ quantity, schedule }) => `${quantity} ${schedule}`;
    /** @type {(offer: Offer) => void} */
    const take = (offer) => {
      if (offer.instead !== null) reschedule([offer]);
    };
    /** @type {Sparser[]} */
    let offers = [];

    listen(all, "click", () => offers.length && reschedule(offers));
    listen(below, "change", () => ask());
    listen(limit, "input", () => ticket.clear());
    listen(limit, "keydown", (event) => {
      if (event.key !== "Enter") return;
      below.checked = true;
      ask();
    });

    function ask() {
      const percent = Number(limit.value.replace(",", "."));
      if (below.checked && !(percent > 0)) return ticket.say("refused", "a number above 0 is needed");
      const id = link.ask("budget", { percent: below.checked ? percent : null });
      return ticket.follow([id]);
    }

    /** @param {Sparser[]} some */
    function reschedule(some) {
      const clicks = some.map(({ group, instead }) => ({
        where: group.rows.map((row) => row.module),
        quantity: group.quantity,
        schedule: instead,
      }));
      ticket.follow(clicks.map((click) => link.ask("reschedule", click)));
    }

    function describe() {
      const { status } = state;
      const { n_measured: n, step_s: step, budget: told } = state.parts.probes;
      const percent = status.cost_percent ?? 0;
      const measured = n >= LEAST_STEPS;
      setText(title, measured ? `Probes take ${percentText(percent)} of a step` : "Probes");
      setText(account, measured ? accountText(percent, step, n) : "");
      if (!below.matches(":focus")) below.checked = told !== null;
      if (told !== null && !limit.matches(":focus")) limit.value = String(told);
      setText(note, budgetText(told, percent));
      ticket.describe();
      if (measured) showDearest(percent);
      else showUnmeasured(n);
      setHidden(all, !measured || !offers.length);
    }

    /**
     * @param {number | null} told
     * @param {number} percent
     */
    function budgetText(told, percent) {
      if (told === null) return "";
      if (percent <= told) return state.status.budget;
      const done = state.status.budget && `${state.status.budget}. `;
      return `${done}${percentText(percent)} now; ${CHOSEN}`;
    }

    /** @param {number} n */
    function showUnmeasured(n) {
      const has = n ? `; ${grouped(n)} so far` : "";
      setText(waiting, `not measured yet: ${LEAST_STEPS} steps are needed${has}`);
      offers = [];
      setChildren(table, [waiting]);
    }

    /** @param {number} percent */
    function showDearest(percent) {
      const groups = probeGroups(state).sort((a, b) => b.percent - a.percent);
      const dearest = steady(groups.filter((group) => group.percent > 0).slice(0, N_DEAREST));
      offers = dearest.map(offerOf).filter((offer) => offer.instead !== null);
      const left = percent - offers.reduce((sum, one) => sum + one.group.percent - one.left, 0);
      const count = { 1: "It", 2: "Both", 3: "All three" }[offers.length] ?? "";
      const reason = state.status.can.reschedule ?? "";
      setText(all, `${count}: ${significant(percent, 2)} → ${percentText(Math.max(0, left))}`);
      setGreyed(all, reason);
      const most = Math.max(...dearest.map((group) => group.percent));
      for (const group of dearest) valueAt(rows, keyOf(group)).describe(offerOf(group), most, reason);
      const listed = describeRest(groups, dearest, percent);
      setChildren(table, [...heads, ...[...rows.values(), ...listed].flatMap(({ cells }) => cells)]);
    }

    /**
     * In the order in which they stand, as long as they are the same: numbers change all the time.
     * @param {ProbeGroup[]} dearest
     */
    function steady(dearest) {
      const keys = dearest.map(keyOf);
      if (keys.length !== rows.size || !keys.every((key) => rows.has(key))) {
        const before = new Map(rows);
        rows.clear();
        for (const group of dearest) {
          const key = keyOf(group);
          rows.set(key, before.get(key) ?? createDearRow(offerOf(group), { take, signal }));
        }
      }
      return [...rows.keys()].map((key) => dearest[keys.indexOf(key)]);
    }

    /**
     * The rows below the dearest: together they are what the header says.
     * @param {ProbeGroup[]} groups
     * @param {ProbeGroup[]} dearest
     * @param {number} percent
     */
    function describeRest(groups, dearest, percent) {
      const rest = groups.filter((group) => !dearest.includes(group));
      const ofRest = sumOf(rest);
      const ofRows = Math.max(0, percent - sumOf(dearest) - ofRest);
      const link = `all ${grouped(groups.length)}`;
      const text = rest.length === 1 ? "1 other" : `${grouped(rest.length)} others`;
      others.describe({ text, percent: ofRest, link, title: namesOf(rest) });
      const title = "Writing the rows, and what probes share: hooks, steps, copies";
      keeping.describe({ text: "row keeping", percent: ofRows, link: rest.length ? "" : link, title });
      return rest.length ? [others, keeping] : [keeping];
    }

    return { el, describe };
  }

  refresh();
  return { el: button };
}

/**
 * "3.9 ms of 23 ms, over the last 64 steps"
 * @param {number} percent
 * @param {number | null} step
 * @param {number} n
 */
function accountText(percent, step, n) {
  const over = `over the last ${grouped(n)} steps`;
  if (step === null) return over;
  /** @type {(seconds: number) => string} */
  const ms = (seconds) => `${significant(1000 * seconds, 2)}${THIN_SPACE}ms`;
  return `${ms((step * percent) / 100)} of ${ms(step)}, ${over}`;
}
