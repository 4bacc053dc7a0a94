/** The rows of vectors in sight: moved by the wheel, walked through by keys. */

/** @type {Record<string, number>} */
const ARROWS = { ArrowUp: -1, ArrowDown: 1 };

/**
 * @typedef {Pick<PanelParts, "state" | "signal"> & {
 *   plot: Plot,
 *   painted: () => PaintedVectors | null,
 *   point: (cursor: Cursor) => void,
 *   enter: (row: VectorRow, isShifted: boolean) => void,
 * }} RowScrollParts
 */

/**
 * `enter(row, isShifted)` is called by the Enter key.
 * @param {RowScrollParts} parts
 */
export function createRowScroll({ state, plot, painted, point, enter, signal }) {
  let first = 0; // row at the top

  plot.canvas.addEventListener("wheel", scrolled, { signal, passive: false });
  plot.canvas.addEventListener("keydown", pressed, { signal });

  /** @param {WheelEvent} event */
  function scrolled(event) {
    const shown = painted();
    if (!shown || event.ctrlKey || event.metaKey) return; // that zooms
    const last = first + shown.places.length;
    const next = first + Math.sign(event.deltaY);
    if (next < 0 || (event.deltaY > 0 && last >= shown.frame.rows.length)) return;
    first = next;
    event.preventDefault();
    plot.request();
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const shown = painted();
    if (!shown) return;
    const at = state.cursor?.row ?? -1;
    const by = ARROWS[event.key];
    if (by) climb(shown, Math.min(Math.max(at + by, 0), shown.frame.rows.length - 1));
    else if (event.key === "Enter" && at >= 0) enter(shown.frame.rows[at], event.shiftKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * @param {PaintedVectors} shown
   * @param {number} row
   */
  function climb({ frame, places }, row) {
    if (row < first) first = row;
    else if (row >= first + places.length) first += 1;
    const step = state.cursor?.step ?? frame.end_step;
    point({ row, element: state.cursor?.element ?? 0, step, from: "vectors" });
  }

  return {
    /**
     * Return the row at the top, which is at most the last of `n`.
     * @param {number} n
     */
    first(n) {
      first = Math.min(first, Math.max(0, n - 1));
      return first;
    },
  };
}
