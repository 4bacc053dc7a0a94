/** What a line is called beside it: the shortest end of its path that no other one has. */

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
  return {
    title: quantities.size === 1 ? withUnits(only) : "",
    /** @param {PaintedSeries} series */
    label({ module, quantity, left }) {
      if (left) return "before";
      if (module === ROOT) return inLabel(quantity);
      const end = ends.get(module) ?? module;
      return quantities.size === 1 ? end : seriesName(end, inLabel(quantity));
    },
  };
}
