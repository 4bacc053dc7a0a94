/** One more breakpoint: of which kind, and what that needs; a series is tried on what is recorded. */

import { fittingQuantities } from "../../controls/fitting.js";
import { element, setAttribute, setHidden, setText, throttled } from "../../dom.js";
import { isVector } from "../../state.js";
import { chip, choice, field, numberOf } from "./fields.js";
import { trialText } from "./trial_text.js";

/** @type {Array<[BreakClick["kind"], string]>} */
const KINDS = [
  ["step", "step"],
  ["alert", "alert"],
  ["series", "series"],
  ["nan", "NaN"],
  ["error", "error"],
];
/** @type {Array<BreakClick["sign"]>} */
const SIGNS = [">", "<", ">=", "<=", "crosses"];
const ROOT = "(root)";
/** @type {FieldsOf<"try_break">} */
const NOTHING = { module: ROOT, quantity: "", sign: ">", number: 0, for_rows: 1 };
/** @type {Record<string, string>} */
const ALONE = {
  nan: "For logged values, and outputs and gradients that are watched by a norm, RMS or largest value.",
  error: "When the loop raises: its state is kept for inspection, then it raises as usual.",
};

/** @param {Pick<PanelParts, "state" | "link"> & { follow: (id: string) => void }} parts */
export function createNewBreak({ state, link, follow }) {
  const kinds = new Map(KINDS.map(([kind, text]) => [kind, chip(kind, text)]));
  const step = field("Step", "9ch");
  const rules = choice("Alert rule");
  const [module, quantity, sign] = [choice("Module"), choice("Quantity"), choice("Comparison")];
  const number = field("Number", "9ch");
  const rows = field("Rows", "4ch");
  const beforeUpdate = element("input", { type: "checkbox" });
  const early = element("label", { class: "nbp-soft" }, beforeUpdate, " before the update");
  const forms = {
    step: element("div", { class: "nbp-form" }, "before step ", step),
    alert: element("div", { class: "nbp-form" }, rules, " fires"),
    series: element("div", { class: "nbp-form" }, module, quantity, sign, number, "for", rows, "rows"),
    nan: element("div", { class: "nbp-form" }, "something is NaN or infinite"),
    error: element("div", { class: "nbp-form" }, "the loop raises"),
  };
  const words = element("div", { class: "nbp-soft nbp-trial", role: "status" });
  const add = element("button", { class: "nbp-main", type: "button", "data-action": "add-break" });
  const el = element(
    "div",
    { class: "nbp-new-break" },
    element(
      "div",
      { class: "nbp-form" },
      "New",
      element("span", { class: "nbp-kinds", role: "group" }, ...kinds.values()),
      early,
    ),
    ...Object.values(forms),
    element("div", { class: "nbp-form nbp-add" }, words, add),
  );
  const life = new AbortController();
  /** @type {BreakClick["kind"]} */
  let kind = "series";

  for (const [name, button] of kinds) button.addEventListener("click", () => choose(name));
  for (const node of [module, quantity, sign, number, rows, beforeUpdate, step, rules]) {
    node.addEventListener("input", changed);
    node.addEventListener("keydown", (event) => {
      if (event instanceof KeyboardEvent && event.key === "Enter") pressedEnter(event);
    });
  }
  module.addEventListener("input", () => fillQuantities());
  add.addEventListener("click", ask);
  const tellTrial = throttled(150, () => link.send("try_break", trialAsked()), life.signal);

  sign.append(...SIGNS.map((one) => new Option(one)));
  rows.value = "1";
  step.value = String(state.status.step + 100);
  fill();
  choose("series");

  /** @param {BreakClick["kind"]} name */
  function choose(name) {
    kind = name;
    for (const [other, button] of kinds) setAttribute(button, "aria-pressed", other === name);
    for (const [other, form] of Object.entries(forms)) setHidden(form, other !== name);
    setHidden(early, !["series", "nan"].includes(name));
    changed();
  }

  function changed() {
    if (sign.value === "crosses") rows.value = "1";
    rows.disabled = sign.value === "crosses";
    tellTrial();
    refresh();
  }

  /** Modules with something recorded or attached first; what is drawn or marked is chosen. */
  function fill() {
    const { severe = [], rules: names = [] } = state.parts.breaks;
    rules.append(new Option(`any severe one (${severe.length} rules)`, ""), ...names.map((one) => new Option(one)));
    const [drawn] = state.selection.series;
    const marked = [...state.marked][0];
    const measured = new Set(Object.values(state.status.recorded).flat());
    for (const [place] of state.status.attached) measured.add(place);
    const all = state.model.modules.map((row) => row.path);
    const listed = [...all.filter((one) => measured.has(one)), ...all.filter((one) => !measured.has(one))];
    module.append(...listed.map((one) => new Option(one)));
    module.value = marked ?? drawn?.[0] ?? listed[0] ?? ROOT;
    fillQuantities(drawn?.[0] === module.value ? drawn[1] : state.selection.home);
  }

  /** @param {string} [wanted] */
  function fillQuantities(wanted = quantity.value) {
    const place = module.value;
    const here = Object.entries(state.status.recorded).filter(([, at]) => at.includes(place));
    const attached = state.status.attached.filter(([at]) => at === place);
    const known = [...here.map(([name]) => name), ...attached.map(([, name]) => name)];
    const row = state.model.byPath.get(place);
    const others = fittingQuantities(state.model.quantities, row).map((one) => one.name);
    const names = [...new Set([...known, ...others])].filter((one) => !isVector(state, one));
    quantity.replaceChildren(...names.map((one) => new Option(one)));
    quantity.value = names.includes(wanted) ? wanted : (names[0] ?? "");
    changed();
  }

  /** @returns {FieldsOf<"try_break">} */
  function trialAsked() {
    if (life.signal.aborted || kind !== "series") return NOTHING;
    return {
      module: module.value,
      quantity: quantity.value,
      sign: signAsked(),
      number: numberOf(number),
      for_rows: rowsAsked(),
    };
  }

  function signAsked() {
    return SIGNS[sign.selectedIndex];
  }

  function rowsAsked() {
    return Math.max(1, Math.round(numberOf(rows) ?? 1));
  }

  function schedules() {
    return state.status.attached
      .filter(([place, name]) => place === module.value && name === quantity.value)
      .map(([, , schedule]) => schedule);
  }

  function isMeasured() {
    const recorded = state.status.recorded[quantity.value] ?? [];
    return schedules().length > 0 || recorded.includes(module.value);
  }

  function refresh() {
    const needsProbe = kind === "series" && !isMeasured();
    setText(add, needsProbe ? "Attach and arm" : "Add");
    setText(words, kind === "series" ? seriesText(needsProbe) : (ALONE[kind] ?? ""));
  }

  /** @param {boolean} needsProbe */
  function seriesText(needsProbe) {
    const name = module.value === ROOT ? quantity.value : `${module.value} · ${quantity.value}`;
    if (needsProbe) return `${name} is not measured: it is attached at every step`;
    const { trial } = state.parts.breaks;
    const isOfThis = trial && trial.module === module.value && trial.quantity === quantity.value;
    return trialText(name, isOfThis ? trial : null, schedules()[0]);
  }

  /** @param {KeyboardEvent} event */
  function pressedEnter(event) {
    event.preventDefault();
    event.stopPropagation();
    ask();
  }

  function ask() {
    const value = kind === "step" ? numberOf(step) : kind === "series" ? numberOf(number) : 0;
    const isRight = value !== null && (kind !== "step" || (value >= 0 && value % 1 === 0));
    const asked = kind === "step" ? step : number;
    setAttribute(asked, "aria-invalid", isRight ? null : "true");
    if (!isRight) {
      setText(words, kind === "step" ? "a whole number from 0 is needed" : "a number is needed");
      return asked.focus();
    }
    if (kind === "series" && !isMeasured()) {
      const where = [module.value];
      link.ask("attach", { where, quantity: quantity.value, schedule: "every(1)" });
    }
    return follow(
      link.ask("break", {
        kind,
        module: module.value,
        quantity: quantity.value,
        sign: signAsked(),
        number: value,
        for_rows: rowsAsked(),
        rules: rules.value ? [rules.value] : [],
        before: beforeUpdate.checked && !early.hidden ? "update" : "step",
      }),
    );
  }

  return {
    el,
    refresh,
    close() {
      life.abort();
      link.send("try_break", NOTHING);
    },
  };
}
