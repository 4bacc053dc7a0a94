/** Formulas of series as they are typed: what is drawn, and how the last name can go on. */

import { ROOT } from "../names.js";
import { hasSeries } from "../state.js";

const MOST_NAMES = 8;
const LAST_NAME = /(?:(?<quantity>[\w.]+)@(?<module>"?[^"\s]*)|(?<word>[\w.]+))$/;

/**
 * The entries of a list for a text that begins with "=".
 * @param {Pick<PanelState, "status" | "selection">} state
 * @param {string} typed
 * @param {(module: string, quantity: string) => void} add
 * @returns {ListItem[]}
 */
export function formulaItems(state, typed, add) {
  const formula = spaced(typed);
  if (formula === "= ") return examples(state.status).map((text) => completing(text, "an example"));
  const draws = {
    text: formula,
    note: hasSeries(state.selection, ROOT, formula) ? "drawn" : "draw this formula",
    data: { quantity: formula },
    act: () => add(ROOT, formula),
  };
  return [draws, ...completions(state.status, formula)];
}

/**
 * One formula, however it is typed.
 * @param {string} typed
 */
export function spaced(typed) {
  return `= ${typed.slice(1).trim()}`;
}

/**
 * Names that the last word begins: of quantities, and after @ of the modules that have the quantity.
 * @param {Pick<Status, "recorded">} status
 * @param {string} formula
 */
function completions({ recorded }, formula) {
  const { quantity, module, word = "" } = formula.match(LAST_NAME)?.groups ?? {};
  const typed = module ?? word;
  const names = module === undefined ? Object.keys(recorded) : (recorded[quantity] ?? []).map(quoted);
  const begins = typed.toLowerCase();
  const found = names.filter((name) => begins && name !== typed && name.toLowerCase().startsWith(begins));
  const all = module === "" ? names : found;
  const before = formula.slice(0, formula.length - typed.length);
  return all.slice(0, MOST_NAMES).map((name) => completing(before + name, "name"));
}

/**
 * @param {string} text
 * @param {string} note
 * @returns {ListItem}
 */
function completing(text, note) {
  return { text, note, data: {}, completes: text, act: () => {} };
}

/**
 * Formulas of what this run has recorded.
 * @param {Pick<Status, "recorded" | "logged">} status
 */
function examples({ recorded, logged }) {
  const many = Object.keys(recorded).find((one) => (recorded[one] ?? []).length > 1);
  const accuracy = logged.find((one) => one.includes("acc"));
  const single = logged.find((one) => one.includes("loss")) ?? logged[0];
  const texts = [
    accuracy && `= 1 - ${plain(accuracy)}`,
    single && `= running_min(${plain(single)})`,
    many && `= mean(${many})`,
  ];
  return texts.filter((one) => one !== undefined);
}

/** @param {string} name */
function plain(name) {
  return /^[A-Za-z_]\w*(\.\w+)*$/.test(name) ? name : `"${name}"`;
}

/** @param {string} module */
function quoted(module) {
  return /^\w+(\.\w+)*$/.test(module) ? module : `"${module}"`;
}
