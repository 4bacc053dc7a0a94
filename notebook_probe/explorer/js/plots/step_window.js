/** The window of steps that all plots share: chosen by a drag, and left again. */

/**
 * `stepAt(x)` is the step under a pixel, null before the first paint.
 * @param {{ selection: SelectionControl, stepAt: (x: number) => number | null }} parts
 */
export function createStepWindow({ selection, stepAt }) {
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
    reset: () => selection.change({ window: null }),
  };
}
