/** Texts of a heat map: next to its colors, in the tooltip of a cell, in place of a picture. */

import { setAttribute } from "../../dom.js";
import { grouped } from "../../format.js";
import { ratioName } from "../../parts/compare/names.js";
import { partedSteps } from "../../parts/compare/partings.js";
import { unitsOf, whyNotSaved } from "../../state.js";
import { cellTooltip } from "./tooltip.js";

/** @typedef {{ row: number, step: number }} HeatCell */

/**
 * What stands beside the colours of a ratio: of what, and aligned by what.
 * @param {PanelState} state
 * @param {ShownHeat} frame
 */
export function besideWords(state, frame) {
  if (!frame.ratio) return null;
  return { title: `this run ÷ ${ratioName(state)}`, axis: `by ${state.selection.aligned}` };
}

/**
 * Of which frame a cell is: right of what is trained now of that of the line that was left.
 * @param {PaintedHeat} painted
 * @param {HeatCell} cell
 */
export function shownAt({ frame, left }, { row, step }) {
  if (!left || step <= frame.end_step) return { frame, row, isLeft: false };
  return { frame: left.frame, row: left.frame.index.get(frame.rows[row]), isLeft: true };
}

/**
 * @param {PaintedHeat} painted
 * @param {HeatCell} cursor
 * @param {PanelState} state
 */
export function tipOf(painted, cursor, state) {
  const { frame, row = -1, isLeft } = shownAt(painted, cursor);
  const words = tipWords(state, painted.frame);
  const before = isLeft ? `on the parent branch, left at step ${grouped(state.left?.fork ?? 0)}` : "";
  return cellTooltip(frame, row, cursor.step, { ...words, before });
}

/**
 * @param {PanelState} state
 * @param {ShownHeat} frame
 */
function tipWords(state, frame) {
  const steps = partedSteps(state);
  const { folds } = state.selection;
  const units = unitsOf(state.model, frame.quantity);
  return { units, steps, folds, other: frame.ratio ? ratioName(state) : "" };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {ShownHeat | null} frame
 * @param {Pick<PanelState, "left">} state
 */
export function describeHeat(canvas, frame, { left }) {
  setAttribute(canvas, "data-quantity", frame?.quantity ?? "");
  setAttribute(canvas, "data-rows", frame?.rows.length ?? 0);
  setAttribute(canvas, "data-columns", frame?.columns ?? 0);
  setAttribute(canvas, "data-left-to", left?.heat?.end_step ?? -1);
  setAttribute(canvas, "data-last-step", frame?.end_step ?? -1);
  setAttribute(canvas, "data-ratio-to", frame && "to" in frame ? frame.to : null);
}

/** @param {PanelState} state */
export function whyNoHeat(state) {
  const notSaved = state.selection.home && whyNotSaved(state, state.selection.home);
  if (notSaved) return notSaved;
  if (state.selection.home) return "Waiting for the first value.";
  return Object.keys(state.status.recorded).length ? "Choose a quantity above." : "";
}
