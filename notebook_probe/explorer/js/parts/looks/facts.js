/** Facts about a whole tensor, of one look or of two, as a table. */

import { element } from "../../dom.js";
import { grouped, significant } from "../../format.js";

/** @type {Array<[string, (facts: TensorFacts) => string]>} */
const ROWS = [
  ["min", (facts) => number(facts.minimum)],
  ["mean", (facts) => number(facts.mean)],
  ["max", (facts) => number(facts.maximum)],
  ["std", (facts) => number(facts.std)],
  ["zeros", (facts) => `${significant((100 * facts.zeros) / size(facts), 3)} %`],
  ["NaN, ∞", (facts) => grouped(facts.nonfinite)],
];

/**
 * @param {ShownBlock} block
 * @param {number} step
 * @param {number} otherStep
 */
export function factsTable({ facts, other_facts: others }, step, otherStep) {
  const looks = others ? [facts, others] : [facts];
  const heads = others ? [step, otherStep] : [step];
  return element(
    "table",
    { class: "nbp-look-facts" },
    row("", [`${facts.dtype}, ${facts.device}`]),
    row("at step", heads.map(grouped)),
    ...ROWS.map(([name, text]) => row(name, looks.map(text))),
  );
}

/**
 * @param {string} name
 * @param {string[]} cells
 */
function row(name, cells) {
  const first = name ? element("th", { scope: "row" }, name) : element("td");
  return element("tr", {}, first, ...cells.map((text) => element("td", {}, text)));
}

/** @param {number | null} value */
function number(value) {
  return value === null ? "–" : significant(value);
}

/** @param {TensorFacts} facts */
function size({ shape }) {
  return Math.max(1, shape.reduce((product, one) => product * one, 1));
}
