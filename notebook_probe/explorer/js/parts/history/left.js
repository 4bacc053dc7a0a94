/** The line that was left for a branch, as `state.left`: { to, fork, lines, heat }; null without one. */

import { decodeHeat, decodeLines } from "../../link/frames.js";
import { hasSeries } from "../../state.js";

/** @param {PanelState} state */
export function followLeft(state) {
  const frames = { left_lines: null, left_heat: null };
  const decode = { left_lines: decodeLines, left_heat: decodeHeat };
  for (const kind of Object.keys(frames)) {
    state.on(kind, () => {
      const message = state.parts[kind];
      frames[kind] = decode[kind](message, message.buffers);
      refresh();
    });
  }
  state.on("history", refresh);

  function refresh() {
    const { left, fork } = state.parts.history;
    state.left = left && { to: left.to, fork, lines: frames.left_lines, heat: frames.left_heat };
    state.emit("left");
  }
}

/**
 * Its series that are drawn beside those of a frame, with x as that frame counts it.
 * @param {Pick<PanelState, "left" | "lines" | "selection">} state
 */
export function leftSeries({ left, lines, selection }) {
  if (!left?.lines || !lines) return [];
  const shift = left.lines.x0 - lines.x0;
  const moved = (x) => (shift ? x.map((one) => one + shift) : x);
  const isDrawn = (one) => hasSeries(selection, one.module, one.quantity);
  return left.lines.series
    .filter((one) => one.n && isDrawn(one))
    .map((one) => ({
      ...one,
      x: moved(one.x),
      average: { ...one.average, x: moved(one.average.x) },
      marks: moved(one.marks),
      left: true,
    }));
}

/**
 * Its heat map, where that is of the same quantity and goes further than the branch.
 * @param {Pick<PanelState, "left">} state
 */
export function leftHeat({ left }, frame) {
  const other = left?.heat;
  const fits = other?.quantity === frame.quantity && other.columns > 0;
  return fits && other.end_step > frame.end_step ? other : null;
}
