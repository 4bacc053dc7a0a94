/** The shared choice of what to draw: changed at once here, then sent to the kernel. */

import { atRest, throttled } from "../dom.js";
import { EMPTY_SELECTION, hasSeries } from "../state.js";
import { createUndo } from "./undo.js";

const PATIENCE_MS = 1000;
// Plots are moved at once. The kernel uses the new steps in its next refresh, and refreshes when the hand rests.
const [REST_MS, MOVING_MS] = [150, 500];
const NAMES = /** @type {Array<keyof PanelSelection>} */ (Object.keys(EMPTY_SELECTION));

/**
 * `change(patch)` for clicks here, `receive(message)` for what the kernel says.
 * @param {PanelState} state
 * @param {KernelLink["send"]} send
 * @param {AbortSignal} signal
 */
export function createSelection(state, send, signal) {
  let waiting = 0;
  /** @type {PanelSelection | null} */
  let late = null;
  signal.addEventListener("abort", () => clearTimeout(waiting));
  const tell = () => send("selection", state.selection);
  const sendSoon = throttled(100, tell, signal);
  const tellMoving = throttled(MOVING_MS, () => send("moved", { window: state.selection.window }), signal);
  const tellAtRest = atRest(REST_MS, tell, signal);

  /**
   * @param {PanelSelection} selection
   * @param {() => void} [meanwhile]
   */
  function adopt(selection, meanwhile = () => {}) {
    state.selection = selection;
    meanwhile();
    state.emit("selection");
  }

  // An echo of an older click must not undo a newer one; what the kernel says last wins.
  function settle() {
    clearTimeout(waiting);
    waiting = 0;
    if (late) adopt(late);
    late = null;
  }

  const history = createUndo();

  /** @param {Partial<PanelSelection>} patch */
  function change(patch) {
    history.note(state.selection, patch);
    apply(patch);
  }

  /**
   * @param {Partial<PanelSelection>} patch
   * @param {() => void} [tellOf]
   */
  function apply(patch, tellOf = sendSoon) {
    late = null;
    clearTimeout(waiting);
    waiting = setTimeout(settle, PATIENCE_MS);
    adopt({ ...state.selection, ...patch }, tellOf); // before the views are busy with it
  }

  return {
    change,
    /**
     * Change the window while a hand moves it.
     * @param {PanelSelection["window"]} window
     */
    move(window) {
      history.note(state.selection, { window });
      apply({ window }, () => {
        tellMoving();
        tellAtRest();
      });
    },
    /** Take the last change in this view back. */
    undo() {
      const patch = history.undo();
      if (patch) apply(patch);
    },
    /** Make the last change again that was taken back. */
    redo() {
      const patch = history.redo();
      if (patch) apply(patch);
    },
    changes: history.words,
    /** @param {SelectionMessage} message */
    receive(message) {
      const fields = NAMES.map((name) => [name, message[name]]);
      const selection = /** @type {PanelSelection} */ (Object.fromEntries(fields));
      if (!waiting) {
        adopt(selection);
      } else {
        late = sameSelection(selection, state.selection) ? null : selection;
        if (!late) settle();
      }
    },
    /**
     * @param {string} module
     * @param {string} quantity
     */
    add(module, quantity) {
      if (hasSeries(state.selection, module, quantity)) return;
      change({ series: [...state.selection.series, [module, quantity]] });
    },
    /**
     * @param {string} module
     * @param {string} quantity
     */
    remove(module, quantity) {
      /** @type {(series: Array<[string, string]>) => Array<[string, string]>} */
      const rest = (series) => series.filter(([m, q]) => m !== module || q !== quantity);
      const charts = state.selection.charts.map((chart) => ({ ...chart, series: rest(chart.series) }));
      change({ series: rest(state.selection.series), charts });
    },
    /**
     * Charts as a user arranges them; what is in none of them, of those that were drawn, is left out.
     * @param {ChartMessage[]} charts
     */
    arrange(charts) {
      const series = charts.flatMap((chart) => chart.series);
      const has = (/** @type {[string, string]} */ [m, q]) => series.some(([one, other]) => one === m && other === q);
      const kept = state.selection.series.filter(has);
      const added = series.filter(([module, quantity]) => !hasSeries(state.selection, module, quantity));
      change({ charts, series: [...kept, ...added] });
    },
  };
}

/**
 * @param {PanelSelection} one
 * @param {PanelSelection} other
 */
function sameSelection(one, other) {
  return NAMES.every((name) => JSON.stringify(one[name]) === JSON.stringify(other[name]));
}
