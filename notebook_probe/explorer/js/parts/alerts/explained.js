/** Quantities that explain an alert, to be attached at its module. */

import { fittingRows } from "../../controls/fitting.js";

/**
 * The first explaining quantity that fits and is not attached there, { quantity, where }; else null.
 * @param {PanelAlert} alert
 * @param {RuleRow | undefined} rule
 * @param {PanelState} state
 */
export function explanation(alert, rule, state) {
  const rows = alert.modules.flatMap((path) => state.model.byPath.get(path) ?? []);
  if (!rule || !rows.length || !state.model.live) return null;
  for (const name of rule.explained_by) {
    const one = state.model.quantities.find((quantity) => quantity.name === name);
    const where = one ? fittingRows(one, rows).filter((row) => !isAttached(state, row.path, name)) : [];
    if (where.length) return { quantity: name, where: where.map((row) => row.path) };
  }
  return null;
}

/**
 * @param {Pick<PanelState, "probes">} state
 * @param {string} path
 * @param {string} name
 */
function isAttached({ probes }, path, name) {
  return (probes.byModule.get(path) ?? []).some(({ quantity }) => quantity === name);
}
