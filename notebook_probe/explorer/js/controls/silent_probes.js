/** "12 probes have no values" above the tree: those that should fire and do not, by reason. */

import { element, setHidden, setText } from "../dom.js";
import { grouped } from "../format.js";
import { probesText, shortList } from "../probes.js";
import { createPopover } from "./popover.js";

const MOST_QUANTITIES = 3;

/** @param {Pick<PanelParts, "state" | "signal">} parts */
export function createSilentProbes({ state, signal }) {
  const count = element("button", {
    class: "nbp-link nbp-silent",
    type: "button",
    "data-action": "silent",
    title: "Probes without values, and the reasons",
  });
  const { el } = createPopover({ button: count, search: "", items: reasonItems, signal });
  state.on("status", refresh);

  function refresh() {
    const n = groups().reduce((sum, { probes }) => sum + probes.length, 0);
    setText(count, `▲ ${probesText(n)} ${n === 1 ? "has" : "have"} no values`);
    setHidden(el, !n);
  }

  const groups = () => state.status.silent.filter(({ kind }) => kind !== "waiting");

  function reasonItems() {
    return groups().map(({ reason, probes }) => {
      const rows = probes.map((place) => state.probes.rows[place]).filter(Boolean);
      return {
        text: reason,
        note: probesText(probes.length),
        detail: whereText(rows),
        data: { reason },
        act: () => show(rows.map((row) => row.module)),
      };
    });
  }

  /**
   * Mark the modules, and reveal the first in the tree.
   * @param {string[]} modules
   */
  function show(modules) {
    const known = modules.filter((path) => state.model.byPath.has(path));
    if (!known.length) return;
    state.marked = new Set(known);
    state.emit("marked");
    state.emit("reveal");
  }

  refresh();
  return { el };
}

/**
 * "output_std at conv1, bn1 and 9 more, last at step 120; grad_norm at conv1"
 * @param {ProbeRow[]} rows
 */
function whereText(rows) {
  /** @type {string[]} */
  const parts = [];
  for (const [quantity, places] of Map.groupBy(rows, (row) => row.quantity)) {
    const last = Math.max(...places.map((row) => row.step));
    const since = last >= 0 ? `, last at step ${grouped(last)}` : "";
    parts.push(`${quantity} at ${shortList(places.map((row) => row.module))}${since}`);
  }
  const rest = parts.length - MOST_QUANTITIES;
  const more = rest > 0 ? `; and ${grouped(rest)} more quantities` : "";
  return parts.slice(0, MOST_QUANTITIES).join("; ") + more;
}
