/** Labels of lines: the shortest unique end of each path. */

import { ROOT, seriesName } from "../../names.js";
import { unitsOf } from "../../state.js";
import { uniqueEnds } from "./unique_ends.js";

/**
 * Logged by the loop, not measured by a probe.
 * @param {Pick<PanelState, "status">} state
 * @param {string} module
 * @param {string} quantity
 */
export function isLogged({ status }, module, quantity) {
  return module === ROOT && status.logged.includes(quantity);
}

/**
 * What is said of each line beside it; one quantity is said above all of them instead.
 * @param {PanelState} state
 * @param {PreparedSeries[]} prepared
 */
export function lineLabels(state, prepared) {
  const ends = uniqueEnds(prepared.map((one) => one.module));
  const quantities = new Set(prepared.map((one) => one.quantity));
  const units = new Set([...quantities].map((name) => unitsOf(state.model, name)));
  const [only] = quantities;
  /** @type {(name: string) => string} */
  const withUnits = (name) => {
    const unit = unitsOf(state.model, name);
    return unit === "1" ? name : `${name} [${unit}]`;
  };
  /** @type {(name: string) => string} */
  const inLabel = units.size > 1 ? withUnits : (name) => name;
  /** @type {(series: Pick<PaintedSeries, "module" | "quantity">) => string} */
  const ownName = ({ module, quantity }) => {
    if (module === ROOT) return inLabel(quantity);
    const end = ends.get(module) ?? module;
    return quantities.size === 1 ? end : seriesName(end, inLabel(quantity));
  };
  return {
    title: quantities.size === 1 ? withUnits(only) : "",
    /** @param {PaintedSeries} series */
    label({ name: run, missing, left, ...series }) {
      if (left) return "before";
      if (!run) return ownName(series);
      if (missing) return `${run}: ${missing}`;
      return prepared.length > 1 ? `${run} · ${shortName(series, prepared, ends)}` : run;
    },
  };
}

/**
 * Of a series of another run, beside that run's name: its module, or its quantity where that tells more.
 * @param {Pick<PaintedSeries, "module" | "quantity">} series
 * @param {PreparedSeries[]} prepared
 * @param {Map<string, string>} ends
 */
function shortName({ module, quantity }, prepared, ends) {
  const n = prepared.filter((one) => one.module === module).length;
  return module === ROOT || n > 1 ? quantity : (ends.get(module) ?? module);
}
