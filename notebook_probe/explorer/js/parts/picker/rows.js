/** The rows of the quantity picker: what fits first, what does not last and with its reason. */

import { element, setText } from "../../dom.js";
import { THIN_SPACE, grouped, microseconds, significant } from "../../format.js";
import { misfitReason } from "../../controls/fitting.js";

/** @typedef {{ quantity: QuantityRow, reason: string }} JudgedQuantity */

/**
 * `{ quantity, reason }`, those that fit before the others where that is wanted.
 * @param {QuantityRow[]} quantities
 * @param {TreeRow[]} marked
 * @param {boolean} fittingFirst
 * @returns {JudgedQuantity[]}
 */
export function sortedByFit(quantities, marked, fittingFirst) {
  const judged = quantities.map((quantity) => ({ quantity, reason: misfitReason(quantity, marked) }));
  if (!fittingFirst) return judged;
  return [...judged.filter(({ reason }) => !reason), ...judged.filter(({ reason }) => reason)];
}

/**
 * `n` is at how many modules it is attached.
 * @param {JudgedQuantity} judged
 * @param {number} n
 */
export function quantityRow({ quantity, reason }, n) {
  const named = element("span", { class: "nbp-pick-name" }, element("code", {}, quantity.name));
  if (quantity.value === "vector") named.append(element("i", { class: "nbp-bars", title: "a vector" }));
  if (n) named.append(element("span", { class: "nbp-at" }, `● at ${grouped(n)}`));
  const row = rowOf(
    named,
    reason || plain(quantity.summary),
    reason ? "" : quantity.formula,
  );
  row.setAttribute("data-quantity", quantity.name);
  row.setAttribute("title", titleOf(quantity, reason));
  if (reason) row.setAttribute("aria-disabled", "true");
  return row;
}

/** @param {PresetEntry} preset */
export function presetRow(preset) {
  const named = element("span", { class: "nbp-pick-name" }, element("code", {}, preset.name));
  const row = rowOf(named, preset.about, "");
  row.setAttribute("data-preset", preset.name);
  return row;
}

/**
 * Say in a row that is there what it takes now: while training goes on that changes all the time.
 * @param {Element} row
 * @param {Record<string, number>} costs
 * @param {PresetEntry[]} presets
 */
export function tellCost(row, costs, presets) {
  const { quantity, preset } = row.dataset;
  const us = quantity === undefined ? undefined : costs[quantity];
  const percent = presets.find((one) => one.name === preset)?.percent ?? null;
  const share = percent === null ? "" : `${significant(percent, 2)}${THIN_SPACE}% of a step`;
  setText(row.children[1], us === undefined ? share : microseconds(us));
}

/**
 * @param {HTMLElement} named
 * @param {string} sentence
 * @param {string} formula
 */
function rowOf(named, sentence, formula) {
  return element(
    "div",
    { class: "nbp-pick", role: "option", "aria-selected": "false" },
    named,
    element("span"),
    element("span", { class: "nbp-soft" }, sentence),
    element("code", { class: "nbp-soft" }, formula),
  );
}

/**
 * @param {QuantityRow} quantity
 * @param {string} reason
 */
function titleOf({ summary, aliases }, reason) {
  const also = aliases.length ? `Also called ${aliases.join(", ")}.` : "";
  return [reason, plain(summary), also].filter(Boolean).join("\n");
}

/**
 * The formula stands beside it: out of the sentence with its marks.
 * @param {string} summary
 */
function plain(summary) {
  return summary.replaceAll("`", "");
}
