/** All steps of a run, as they were drawn last: the limits of a zoom, and what is behind its details. */

import { stepRange } from "./step_axis.js";

/**
 * Keep the frames that came without a window in `state.whole`.
 * @param {PanelState} state
 */
export function followWhole(state) {
  for (const topic of ["heat", "vectors", "lines"]) state.on(topic, keep);
  for (const topic of ["model", "left"]) state.on(topic, () => (state.whole = null)); // the steps may be fewer

  function keep() {
    const range = state.selection.window ? null : stepRange(state);
    if (!range) return;
    const { whole } = state;
    // A frame of the window before may arrive after it was left.
    if (whole && (range.low > whole.low || range.high < whole.high)) return;
    state.whole = { ...range, heat: state.heat, lines: state.lines };
  }
}

/**
 * First step and end of all that can be shown; null before the first value.
 * @param {PanelState} state
 * @returns {[number, number] | null}
 */
export function wholeRange(state) {
  const shown = stepRange(state);
  if (!shown) return null;
  if (!state.selection.window) return [shown.low, shown.high];
  const { low, high } = state.whole ?? { low: 0, high: state.status.step + 1 };
  return [low, Math.max(high, state.status.step)];
}
