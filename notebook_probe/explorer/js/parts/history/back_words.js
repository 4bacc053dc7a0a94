/** What a rewind restores, what stays, and what a checkpoint is. */

import { element } from "../../dom.js";
import { bytes, duration, grouped, significant } from "../../format.js";

/**
 * @param {PanelState} state
 * @param {CheckpointRow} one
 */
export function restoredText(state, one) {
  const { way, branch } = state.parts.history;
  const { rate, step } = state.status;
  const steps = Math.max(0, step - one.step);
  const takes = rate ? `, about ${duration(steps / rate)} to here again` : "";
  const what = way ? `${way.restores} as they were. ` : "";
  const stays = `What was recorded after ${grouped(one.step)} stays, as branch ${branch}`;
  return `${what}${stays}: ${grouped(steps)} steps${takes}.`;
}

/**
 * Of the branch, once it is there.
 * @param {Pick<PanelState, "parts">} state
 * @param {CheckpointRow} one
 */
export function doneText({ parts }, { step }) {
  const { branch, fork, left } = parts.history;
  if (fork !== step || !left) return "";
  const stays = `branch ${branch - 1} stays, to step ${grouped(left.to)}`;
  return `Branch ${branch} goes on from step ${grouped(step)}; ${stays}.`;
}

/** @param {CheckpointRow} one */
export function factsOf(one) {
  const age = Math.max(0, (Date.now() - one.time_ms) / 1000);
  const loss = one.loss === null ? "" : ` · loss ${significant(one.loss)}`;
  return `checkpoint ${duration(age)} ago · ${bytes(one.nbytes)}${loss}`;
}

/** @param {CheckpointRow} one */
export function goneText({ step }) {
  const removed = `the checkpoint of step ${grouped(step)} was removed`;
  return `${removed}; loop.rewind takes the newest one before it and trains up to the step again`;
}

/** @param {CheckpointRow} one */
export function callOf({ step }) {
  return element("pre", {}, `run = loop.rewind(${step}, probes="default")`);
}
