/** Values of a formula in a saved panel: at the steps at which every series in it was measured. */

import { ROOT } from "../../names.js";
import { OF_MODULES, parsed } from "./formula_parsing.js";

/** @type {Record<string, (one: number, other: number) => number>} */
const OPERATIONS = {
  "+": (one, other) => one + other,
  "-": (one, other) => one - other,
  "*": (one, other) => one * other,
  "/": (one, other) => one / other,
  "^": (one, other) => (one === 1 ? 1 : one ** other), // of NaN, too, as IEEE 754 has it
};
/** @type {Record<string, (values: number[]) => number[]>} */
const FUNCTIONS = {
  abs: (values) => values.map(Math.abs),
  sqrt: (values) => values.map(Math.sqrt),
  exp: (values) => values.map(Math.exp),
  log: (values) => values.map(Math.log),
  log10: (values) => values.map(Math.log10),
  running_min: (values) => running(values, Math.min),
  running_max: (values) => running(values, Math.max),
};
/** @type {Record<string, (values: number[]) => number>} */
const OVER_MODULES = {
  sum: (values) => values.reduce((one, other) => one + other, 0),
  mean: (values) => values.reduce((one, other) => one + other, 0) / values.length,
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
};
const EVERY_CHARACTER = /[.+^${}()|[\]\\]/g;

/** @typedef {{ steps: number[], values: number[] }} StepValues */
/** @typedef {Readonly<Record<string, string[]>>} Recorded quantity -> its modules */

/**
 * Its values; an error says why there are none.
 * @param {string} formula
 * @param {Recorded} recorded
 * @param {(module: string, quantity: string) => Promise<StepValues>} read
 * @returns {Promise<StepValues>}
 */
export async function formulaValues(formula, recorded, read) {
  const found = await valueOf(parsed(formula));
  if (typeof found === "number") throw new Error("a formula needs a series");
  return found;

  /**
   * @param {FormulaNode} node
   * @returns {Promise<StepValues | number>}
   */
  async function valueOf(node) {
    if (node.kind === "number") return node.value;
    if (node.kind === "series") {
      const [module] = modulesOf(node, recorded, false);
      return read(module, node.quantity);
    }
    if (node.kind === "operation") {
      return operated(OPERATIONS[node.sign], await valueOf(node.left), await valueOf(node.right));
    }
    const { name, of } = node;
    if (OF_MODULES.includes(name) && of.kind === "series") {
      const modules = modulesOf(of, recorded, true);
      const { steps, columns } = together(await Promise.all(modules.map((module) => read(module, of.quantity))));
      return { steps, values: steps.map((_, k) => OVER_MODULES[name](columns.map((column) => column[k]))) };
    }
    const value = await valueOf(of);
    if (typeof value === "number") return FUNCTIONS[name]([value])[0];
    return { steps: value.steps, values: FUNCTIONS[name](value.values) };
  }
}

/**
 * @param {(one: number, other: number) => number} operate
 * @param {StepValues | number} left
 * @param {StepValues | number} right
 * @returns {StepValues | number}
 */
function operated(operate, left, right) {
  if (typeof left === "number") {
    if (typeof right === "number") return operate(left, right);
    return { steps: right.steps, values: right.values.map((one) => operate(left, one)) };
  }
  if (typeof right === "number") return { steps: left.steps, values: left.values.map((one) => operate(one, right)) };
  const { steps, columns } = together([left, right]);
  return { steps, values: steps.map((_, k) => operate(columns[0][k], columns[1][k])) };
}

/**
 * Values at the steps that all have.
 * @param {StepValues[]} series
 */
function together(series) {
  const known = series.map(({ steps, values }) => new Map(steps.map((step, k) => [step, values[k]])));
  const steps = series[0].steps.filter((step) => known.every((one) => one.has(step)));
  if (!steps.length && series.every((one) => one.steps.length)) {
    throw new Error("no step has a value of every series in it");
  }
  return { steps, columns: known.map((one) => steps.map((step) => Number(one.get(step)))) };
}

/**
 * The modules that a name in a formula is of.
 * @param {{ quantity: string, module: string | null }} series
 * @param {Recorded} recorded
 * @param {boolean} many several are allowed
 */
function modulesOf({ quantity, module }, recorded, many) {
  const own = Object.hasOwn(recorded, quantity) ? recorded[quantity] : null;
  if (!own) throw new Error(`no series '${quantity}' is recorded`);
  if (module === null) {
    if (many || own.length === 1) return own;
    if (own.includes(ROOT)) return [ROOT];
    throw new Error(`${quantity} is recorded of ${own.length} modules: ${quantity}@${own[0]} is one of them`);
  }
  const found = own.includes(module) ? [module] : own.filter((one) => one !== ROOT && globbed(module).test(one));
  if (!found.length) throw new Error(`no ${quantity} of module '${module}'`);
  if (found.length > 1 && !many) {
    throw new Error(`${quantity}@${module} are ${found.length} modules: mean(${quantity}@${module}) is one series`);
  }
  return found;
}

/** @param {string} glob */
function globbed(glob) {
  const pattern = glob.replace(EVERY_CHARACTER, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
  return new RegExp(`^${pattern}$`, "s");
}

/**
 * The best value so far; NaN stays at its own step.
 * @param {number[]} values
 * @param {(one: number, other: number) => number} better
 */
function running(values, better) {
  let best = NaN;
  return values.map((value) => {
    if (Number.isNaN(value)) return NaN;
    best = Number.isNaN(best) ? value : better(best, value);
    return best;
  });
}
