/** The line that was left for a branch, as `state.left`: { to, fork, lines, heat }; null without one. */

import { decodeHeat, decodeLines } from "../../link/frames.js";
import { hasSeries } from "../../state.js";

/** @param {PanelState} state */
export function followLeft(state) {
  /** @type {DecodedLines | null} */
  let lines = null;
  /** @type {DecodedHeat | null} */
  let heat = null;
  state.on("left_lines", () => {
    const message = state.parts.left_lines;
    lines = message && decodeLines(message, message.buffers);
    refresh();
  });
  state.on("left_heat", () => {
    const message = state.parts.left_heat;
    heat = message && decodeHeat(message, message.buffers);
    refresh();
  });
  state.on("history", refresh);

  function refresh() {
    const { left, fork } = state.parts.history;
    state.left = left && { to: left.to, fork, lines, heat };
    state.emit("left");
  }
}

/**
 * Its series that are drawn beside those of a frame, with x as that frame counts it.
 * @param {Pick<PanelState, "left" | "lines" | "selection">} state
 */
export function leftSeries({ left, lines, selection }) {
  // A frame over another axis is replaced soon, or was saved over steps.
  if (!left?.lines || left.lines.x_axis !== lines?.x_axis) return [];
  const shift = left.lines.x0 - lines.x0;
  /** @type {(x: number) => number} */
  const moved = (x) => x + shift;
  return left.lines.series
    .filter((one) => one.n && hasSeries(selection, one.module, one.quantity))
    .map((one) => ({
      ...one,
      x: one.x.map(moved),
      average: { ...one.average, x: one.average.x.map(moved) },
      marks: one.marks.map(moved),
      left: true,
    }));
}

/**
 * Its heat map, where that is of the same quantity and goes further than the branch.
 * @param {Pick<PanelState, "left">} state
 * @param {ShownHeat} frame
 */
export function leftHeat({ left }, frame) {
  const other = left?.heat;
  if (!other?.columns || other.quantity !== frame.quantity) return null;
  return other.end_step > frame.end_step ? other : null;
}
