/** The learning rate in the bar, and behind it everything that can be set while it trains. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { valueAt } from "../../maps.js";
import { createKnobRow } from "./knob_row.js";
import { createRate } from "./rate.js";
import { rateText } from "./rate_text.js";

/** @typedef {{ el: HTMLElement, describe(knob: KnobRow): void }} KnobView */

const RATE = "lr";

/** @param {PanelParts} parts */
export function createKnobs(parts) {
  const { state, dialogs, signal } = parts;
  const name = element("span", { class: "nbp-soft" });
  const value = element("b");
  const button = element(
    "button",
    {
      class: "nbp-bar-word",
      type: "button",
      "data-action": "knobs",
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
    },
    name,
    value,
    element("i", { class: "nbp-chevron", "aria-hidden": "true" }),
  );
  /** @type {Map<string, KnobView>} */
  let rows = new Map(); // name -> what shows it, while the dialog is open

  button.addEventListener("click", open, { signal });
  for (const topic of ["knobs", "status", "tickets"]) state.on(topic, refresh);

  function open() {
    const all = known();
    rows = new Map(all.map((knob) => [knob.name, rowOf(knob)]));
    const content = element("div", { class: "nbp-knobs nbp-sections" });
    const rate = rows.get(RATE);
    if (rate) content.append(rate.el);
    const others = all.filter((knob) => knob.name !== RATE);
    if (others.length) content.append(othersSection(others));
    refresh();
    const label = rate ? "Learning rate" : "Settings";
    dialogs.open({ anchor: button, label, content, closed: () => rows.clear() });
  }

  /** @type {(knob: KnobRow) => KnobView} */
  const rowOf = (knob) => (knob.name === RATE ? createRate(parts) : createKnobRow(knob.name, parts));

  /**
   * One's own stand open; the other options of the optimizers are seldom touched.
   * @param {KnobRow[]} others
   */
  function othersSection(others) {
    const [options, own] = [others.filter(isOption), others.filter((knob) => !isOption(knob))];
    /** @type {(knobs: KnobRow[]) => HTMLElement[]} */
    const rowsOf = (knobs) => knobs.map((knob) => valueAt(rows, knob.name).el);
    const section = element("section", {}, ...rowsOf(own));
    if (options.length) {
      const names = options.map((knob) => knob.name).join(", ");
      section.append(
        element("details", {}, element("summary", { class: "nbp-soft" }, names), ...rowsOf(options)),
      );
    }
    return section;
  }

  function known() {
    const { knobs } = state.parts.knobs;
    return [...knobs.filter((one) => one.name === RATE), ...knobs.filter((one) => one.name !== RATE)];
  }

  function refresh() {
    const [first] = known();
    setHidden(button, !first);
    if (!first) return;
    setText(name, `${first.name} `);
    setText(value, valueText(first));
    setAttribute(button, "title", "Set the learning rate and other knobs while it trains");
    for (const knob of known()) rows.get(knob.name)?.describe(knob);
  }

  refresh();
  return { el: button };
}

/** @type {(knob: KnobRow) => boolean} */
const isOption = (knob) => knob.groups.length > 0;

/**
 * Of groups that are unlike, from the smallest to the largest.
 * @param {KnobRow} knob
 */
function valueText({ value, groups }) {
  if (value !== null) return rateText(value);
  const there = groups.filter((one) => one !== null);
  return there.length ? `${rateText(Math.min(...there))}…${rateText(Math.max(...there))}` : "…";
}
