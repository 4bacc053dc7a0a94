/** Going where an alert is: its modules, its quantities and its step. */

import { valueOr } from "../../maps.js";
import { pinCursor } from "../../plots/step_marks.js";
import { hasSeries } from "../../state.js";

/** @type {WeakMap<string[], Set<string>>} */
const places = new WeakMap(); // list of modules -> the same as a set

/** @param {string[]} modules */
function placesOf(modules) {
  return valueOr(places, modules, () => new Set(modules));
}

/**
 * Modules of the alert with values of its quantities: [[module, quantity], …] of the first of them.
 * @param {Pick<AlertRow, "modules" | "quantities">} alert
 * @param {Pick<Status, "recorded">} status
 * @returns {Array<[string, string]>}
 */
function drawable({ modules, quantities }, { recorded }) {
  const there = quantities.filter((quantity) => recorded[quantity]?.length);
  for (const module of modules) {
    const here = there.filter((quantity) => placesOf(recorded[quantity]).has(module));
    if (here.length) return here.map((quantity) => [module, quantity]);
  }
  return [];
}

/**
 * Why it cannot be shown; "" where it can.
 * @param {Pick<AlertRow, "modules" | "quantities">} alert
 * @param {PanelState} state
 */
export function whyNotShown(alert, state) {
  if (drawable(alert, state.status).length) return "";
  const { quantities } = alert;
  if (!quantities.length) return "It is about no series";
  return `${quantities.join(", ")} ${quantities.length > 1 ? "are" : "is"} not recorded any more`;
}

/**
 * Mark its modules, draw its series, move the cursor to its step; the window if it must.
 * @param {Pick<AlertRow, "modules" | "quantities" | "step">} alert
 * @param {Pick<PanelParts, "state" | "selection">} parts
 */
export function showAlert(alert, { state, selection }) {
  const marked = alert.modules.filter((path) => state.model.byPath.has(path));
  if (marked.length) {
    state.marked = new Set(marked);
    state.emit("marked");
    state.emit("reveal");
  }
  const series = drawable(alert, state.status).filter(([m, q]) => !hasSeries(state.selection, m, q));
  const { recorded } = state.status;
  const home = alert.quantities.find((quantity) => recorded[quantity]?.length > 1);
  selection.change({
    series: [...state.selection.series, ...series],
    home: home ?? state.selection.home,
    window: windowWith(alert.step, state),
  });
  pinCursor(state, alert.step, { from: "alert", modules: alert.modules });
}

/**
 * The window as it is where the step is in it; else as wide, with the step in its middle.
 * @param {number} step
 * @param {PanelState} state
 * @returns {[number, number] | null}
 */
function windowWith(step, state) {
  const { window } = state.selection;
  if (!window || (step >= window[0] && step <= window[1])) return window;
  const width = window[1] - window[0];
  const first = Math.max(0, Math.round(step - width / 2));
  return [first, first + width];
}
