/** Going where an alert is: its modules, its quantities and its step. */

import { pinCursor } from "../../plots/step_marks.js";
import { hasSeries } from "../../state.js";

const places = new WeakMap(); // list of modules -> the same as a set

function placesOf(modules) {
  if (!places.has(modules)) places.set(modules, new Set(modules));
  return places.get(modules);
}

/** Modules of the alert with values of its quantities: [[module, quantity], …] of the first of them. */
function drawable({ modules, quantities }, { recorded }) {
  const there = quantities.filter((quantity) => recorded[quantity]?.length);
  const known = there.map((quantity) => [quantity, placesOf(recorded[quantity])]);
  for (const module of modules) {
    const series = known.filter(([, paths]) => paths.has(module)).map(([name]) => [module, name]);
    if (series.length) return series;
  }
  return [];
}

/**
 * Why it cannot be shown; "" where it can.
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
 * @param {Pick<AlertRow, "modules" | "quantities" | "step"> & { window?: unknown }} alert
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
 * @param {PanelState} state
 */
function windowWith(step, state) {
  const { window } = state.selection;
  if (!window || (step >= window[0] && step <= window[1])) return window;
  const width = window[1] - window[0];
  const first = Math.max(0, Math.round(step - width / 2));
  return [first, first + width];
}
