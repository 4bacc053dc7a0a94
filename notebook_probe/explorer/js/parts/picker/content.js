/** Contents of the dialog of quantities: questions, their quantities, and a search in all of them. */

import { element, listener, setAttribute, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { presetRow, quantityRow, sortedByFit, tellCost } from "./rows.js";
import { nearNames, searchQuantities } from "./search.js";

const PRESETS = "Presets";
const OTHER = "Others";

/**
 * `take(picked)` is called with a quantity or a preset, the other one is "".
 * @param {Pick<PanelParts, "state" | "signal"> & { value: string, take: TakePicked }} parts
 */
export function createPickerContent({ state, value, take, signal }) {
  const listen = listener(signal);
  const marked = () => [...state.marked].flatMap((path) => state.model.byPath.get(path) ?? []);
  const { quantities } = state.model;
  const search = element("input", {
    type: "search",
    autofocus: "",
    role: "combobox",
    "aria-expanded": "true",
    "aria-label": "Find a quantity",
    placeholder: `Find ${grouped(quantities.length)} quantities: a word, a symbol, another tool’s name`,
    spellcheck: "false",
  });
  const first = element("input", { type: "checkbox", "data-role": "fitting-first" });
  first.checked = true;
  const whose = element("bdi");
  const place = element("span", { class: "nbp-fitting" }, whose);
  const fits = element("label", {}, first, "what fits ", place, " first");
  const questions = element("div", { class: "nbp-questions", role: "tablist", "aria-label": "Questions" });
  const heading = element("p", { class: "nbp-soft" });
  const list = element("div", { class: "nbp-picks", role: "listbox", "aria-label": "Quantities" });
  const el = element(
    "div",
    { class: "nbp-sections nbp-picker" },
    element("header", { role: "none" }, search, fits),
    element("section", {}, questions, element("div", { class: "nbp-pick-side" }, heading, list)),
  );
  const topics = topicsOf(quantities);
  const current = quantities.find((one) => one.name === value);
  let topic = current ? topicOf(current) : PRESETS;
  let active = value;
  let known = "";

  listen(search, "input", () => {
    active = "";
    refresh();
  });
  listen(first, "change", refresh);
  listen(search, "keydown", pressed);
  listen(list, "click", (event) => pick(event.target.closest(".nbp-pick")));
  listen(questions, "click", (event) => {
    const tab = event.target.closest("[data-topic]");
    if (tab) turnTo(tab.dataset.topic ?? PRESETS);
  });

  function refresh() {
    const query = search.value.trim();
    const rows = marked();
    setHidden(fits, !rows.length);
    const where = rows.length === 1 ? rows[0].path : `these ${grouped(rows.length)} modules`;
    setText(whose, where);
    setAttribute(fits, "title", `what fits ${where} first`);
    const counts = Map.groupBy(state.status.attached, ([, quantity]) => quantity);
    const key = JSON.stringify([
      query, topic, first.checked, rows.map((row) => row.fitKind),
      [...counts].map(([quantity, all]) => [quantity, all.length]),
      state.parts.probes.presets.map((one) => one.name),
    ]);
    if (key !== known) {
      known = key;
      showTopics(query);
      showRows(query, rows, counts);
    }
    for (const row of list.children) tellCost(row, state.status.costs, state.parts.probes.presets);
    point();
  }

  /** @param {string} query */
  function showTopics(query) {
    questions.replaceChildren(
      ...[PRESETS, ...topics.keys()].map((one) => {
        const n = one === PRESETS ? state.parts.probes.presets.length : (topics.get(one) ?? []).length;
        return element(
          "button",
          {
            type: "button",
            role: "tab",
            tabindex: "-1",
            "data-topic": one,
            "aria-selected": String(!query && one === topic),
          },
          element("span", {}, one),
          element("span", { class: "nbp-soft" }, grouped(n)),
        );
      }),
    );
  }

  /**
   * @param {string} query
   * @param {TreeRow[]} rows
   * @param {Map<string, unknown[]>} counts
   */
  function showRows(query, rows, counts) {
    const found = query ? searchQuantities(quantities, query) : (topics.get(topic) ?? []);
    const judged = sortedByFit(found, rows, first.checked);
    const nodes = judged.map((one) =>
      quantityRow(one, counts.get(one.quantity.name)?.length ?? 0),
    );
    const all = state.parts.probes.presets;
    const presets = query
      ? all.filter((one) => one.name.includes(query.toLowerCase()))
      : topic === PRESETS ? all : [];
    list.replaceChildren(...nodes, ...presets.map(presetRow));
    [...list.children].forEach((node, k) => (node.id = `${search.dataset.ids}-${k}`));
    setText(heading, headingText(query, list.children.length));
  }

  /**
   * @param {string} query
   * @param {number} n
   */
  function headingText(query, n) {
    if (!query) return topics.get(topic)?.[0]?.question ?? "Everything measured under one name:";
    if (n) return "";
    const names = quantities.flatMap((one) => [one.name, ...one.aliases]);
    const near = nearNames(names, query);
    return `Nothing is called ${query}${near.length ? `; near: ${near.join(", ")}` : ""}`;
  }

  /** @type {(node: Element | undefined) => string} */
  const nameOf = (node) => node?.dataset.quantity ?? node?.dataset.preset ?? "";

  /**
   * Mark the row that Enter takes.
   * @param {boolean} [scroll]
   */
  function point(scroll = false) {
    const nodes = [...list.children];
    const at = nodes.find((node) => nameOf(node) === active) ?? nodes[0];
    for (const node of nodes) setAttribute(node, "aria-selected", String(node === at));
    active = nameOf(at);
    setAttribute(search, "aria-activedescendant", at?.id ?? null);
    if (scroll) at?.scrollIntoView({ block: "nearest" });
    return at;
  }

  /** @param {string} to */
  function turnTo(to) {
    topic = to;
    search.value = "";
    active = "";
    refresh();
    search.focus();
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) move(step);
    else if (turn && !search.value) turnBy(turn);
    else if (event.key === "Enter") pick(point());
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} step */
  function move(step) {
    const nodes = [...list.children];
    const at = nodes.findIndex((node) => nameOf(node) === active);
    active = nameOf(nodes[Math.min(nodes.length - 1, Math.max(0, at + step))]);
    point(true);
  }

  /** @param {number} way */
  function turnBy(way) {
    const all = [PRESETS, ...topics.keys()];
    turnTo(all[(all.indexOf(topic) + way + all.length) % all.length]);
  }

  /** @param {Element | null | undefined} node */
  function pick(node) {
    if (!node || node.getAttribute("aria-disabled") === "true") return;
    take({ quantity: node.dataset.quantity ?? "", preset: node.dataset.preset ?? "" });
  }

  search.dataset.ids = `nbp-pick-${Math.random().toString(36).slice(2)}`;
  list.id = `${search.dataset.ids}-all`;
  search.setAttribute("aria-controls", list.id);
  return { el, refresh };
}

/** @type {(quantity: QuantityRow) => string} */
function topicOf(quantity) {
  return quantity.topic || OTHER;
}

/**
 * In the order of the catalogue; what answers no question last.
 * @param {QuantityRow[]} quantities
 */
function topicsOf(quantities) {
  const groups = Map.groupBy(quantities, topicOf);
  const others = groups.get(OTHER);
  groups.delete(OTHER);
  if (others) groups.set(OTHER, others);
  return groups;
}
