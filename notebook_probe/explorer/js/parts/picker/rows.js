/** The rows of the quantity picker: what fits first, what does not last and with its reason. */

import { element } from "../../dom.js";
import { THIN_SPACE, grouped, microseconds, significant } from "../../format.js";
import { misfitReason } from "../../controls/fitting.js";

/** `{ quantity, reason }`, those that fit before the others where that is wanted. */
export function sortedByFit(quantities, marked, fittingFirst) {
  const judged = quantities.map((quantity) => ({ quantity, reason: misfitReason(quantity, marked) }));
  if (!fittingFirst) return judged;
  return [...judged.filter(({ reason }) => !reason), ...judged.filter(({ reason }) => reason)];
}

export function quantityRow({ quantity, reason }, { status, n }) {
  const us = status.costs[quantity.name];
  const cost = us === undefined ? "" : microseconds(us);
  const named = element("span", { class: "nbp-pick-name" }, element("code", {}, quantity.name));
  if (quantity.value === "vector") named.append(element("i", { class: "nbp-bars", title: "a vector" }));
  if (n) named.append(element("span", { class: "nbp-at" }, `● at ${grouped(n)}`));
  const row = rowOf(
    named,
    element("span", {}, cost),
    reason || plain(quantity.summary),
    reason ? "" : quantity.formula,
  );
  row.setAttribute("data-quantity", quantity.name);
  row.setAttribute("title", titleOf(quantity, reason));
  if (reason) row.setAttribute("aria-disabled", "true");
  return row;
}

export function presetRow(preset) {
  const percent = preset.percent === null ? "" : `${significant(preset.percent, 2)}${THIN_SPACE}% of a step`;
  const named = element("span", { class: "nbp-pick-name" }, element("code", {}, preset.name));
  const row = rowOf(named, element("span", {}, percent), preset.about, "");
  row.setAttribute("data-preset", preset.name);
  return row;
}

function rowOf(named, cost, sentence, formula) {
  return element(
    "div",
    { class: "nbp-pick", role: "option", "aria-selected": "false" },
    named,
    cost,
    element("span", { class: "nbp-soft" }, sentence),
    element("code", { class: "nbp-soft" }, formula),
  );
}

function titleOf({ summary, aliases }, reason) {
  const also = aliases.length ? `Also called ${aliases.join(", ")}.` : "";
  return [reason, plain(summary), also].filter(Boolean).join("\n");
}

/** The formula stands beside it: out of the sentence with its marks. */
function plain(summary) {
  return summary.replaceAll("`", "");
}
