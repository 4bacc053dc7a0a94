/** The window of steps that all plots share: chosen by a drag, zoomed, moved, and left again. */

import { stepRange } from "./step_axis.js";
import { wholeRange } from "./whole.js";

const FEWEST = 2; // steps in a window that is zoomed

/**
 * `stepAt(x)` is the step under a pixel, null before the first paint.
 * @param {Pick<PanelParts, "state" | "selection"> & { stepAt: (x: number) => number | null }} parts
 */
export function createStepWindow({ state, selection, stepAt }) {
  /** @type {[number, number] | null} */
  let exact = null; // what `sent` is rounded from: zooming by less than a step adds up
  /** @type {PanelSelection["window"]} */
  let sent = null;

  /** @returns {[number, number] | null} */
  function shown() {
    if (exact && sent && sent === state.selection.window) return exact;
    const range = stepRange(state);
    return range && [range.low, range.high];
  }

  /**
   * @param {number} low
   * @param {number} high
   */
  function turnTo(low, high) {
    const whole = wholeRange(state);
    if (!whole) return;
    exact = [low, high];
    const isAll = low <= whole[0] && high >= whole[1];
    sent = isAll ? null : [Math.max(whole[0], Math.floor(low)), Math.min(whole[1], Math.ceil(high))];
    if (sent && sent[1] <= sent[0]) return;
    selection.move(sent);
  }

  return {
    /**
     * @param {number} x0
     * @param {number} x1
     */
    range(x0, x1) {
      const [low, high] = [stepAt(x0), stepAt(x1)];
      if (low === null || high === null) return;
      selection.change({ window: [Math.floor(low), Math.max(Math.ceil(high), Math.floor(low) + 1)] });
    },
    /**
     * The step under the pixel stays there; a factor below 1 shows fewer steps.
     * @param {number} x
     * @param {number} factor
     */
    zoom(x, factor) {
      const [step, range] = [stepAt(x), shown()];
      if (step === null || !range) return;
      const by = Math.max(factor, FEWEST / (range[1] - range[0]));
      turnTo(step - (step - range[0]) * by, step + (range[1] - step) * by);
    },
    /**
     * What was under one pixel comes under another, as far as there are steps.
     * @param {number} from
     * @param {number} to
     */
    pan(from, to) {
      const [first, second, range, whole] = [stepAt(from), stepAt(to), shown(), wholeRange(state)];
      if (first === null || second === null || !range || !whole) return;
      const [least, most] = [whole[0] - range[0], whole[1] - range[1]];
      if (least > most) return;
      const by = Math.min(Math.max(first - second, least), most);
      turnTo(range[0] + by, range[1] + by);
    },
    reset: () => selection.change({ window: null }),
  };
}
