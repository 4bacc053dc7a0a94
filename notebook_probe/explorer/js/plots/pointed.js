/** Pointing in a plot: the cursor that all plots share, and the marks below its step axis. */

import { setAttribute } from "../dom.js";
import { hideCursor, placeCursor, showTip } from "./plot.js";
import { markAt, markTip, pressMark } from "./step_marks.js";

/** @typedef {{ marks: PlacedMark[], foot: number }} MarkedAxis */

/**
 * `marked()` is the step axis as last painted, null before.
 * @param {{ state: PanelState, plot: Plot, marked: () => MarkedAxis | null }} parts
 */
export function createPointed({ state, plot, marked }) {
  /** @param {Cursor | null} cursor */
  function point(cursor) {
    state.cursor = cursor;
    state.emit("cursor");
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  function markUnder(x, y) {
    const axis = marked();
    return axis && markAt(axis.marks, x, y, axis.foot);
  }

  return {
    point,
    leave: () => point(state.pinned),
    /**
     * Return whether there is a mark under the pixel.
     * @param {number} x
     * @param {number} y
     */
    hoverMark(x, y) {
      const mark = markUnder(x, y);
      if (mark) point({ step: mark.step, row: null, from: "mark", mark, plot });
      return mark !== null;
    },
    /**
     * Return whether there is a mark under the pixel.
     * @param {number} x
     * @param {number} y
     */
    clickMark(x, y) {
      const mark = markUnder(x, y);
      if (mark) pressMark(state, mark);
      return mark !== null;
    },
    /**
     * Place the line of the cursor; return whether the plot has to show its own tip there.
     * @param {Box | null} box
     * @param {(step: number) => number} placeOf
     */
    placeLine(box, placeOf) {
      const { cursor } = state;
      setAttribute(plot.cursor, "data-from", cursor?.from ?? null);
      if (!box || !cursor) {
        hideCursor(plot);
        return false;
      }
      const x = placeOf(cursor.step);
      placeCursor(plot, x, box.left, box.right, box.top, box.bottom);
      const mark = cursor.plot === plot ? cursor.mark : undefined;
      if (mark) showTip(plot, x, (box.top + box.bottom) / 2, markTip(mark));
      return !mark;
    },
  };
}
