/** Text about a rewind: what it restores, what stays, and what a checkpoint is. */

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
  const takes = rate ? `, about ${duration(steps / rate)} to train them again` : "";
  const what = way ? `${way.restores} are restored. ` : "";
  const stays = `Rows after step ${grouped(one.step)} stay in the record, as branch ${branch}`;
  const again = way?.until == null ? "" : ` The loop has ended: it trains to step ${grouped(way.until)} again.`;
  return `${what}${stays}: ${grouped(steps)} steps${takes}.${again}`;
}

/**
 * Why a loop that has ended would not train after a rewind; "" if it would.
 * @param {Pick<PanelState, "parts">} state
 * @param {CheckpointRow} one
 */
export function endedText({ parts }, { step }) {
  const until = parts.history.way?.until ?? null;
  return until !== null && step >= until ? "Training ended at this step: nothing is left to train" : "";
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
  return `Branch ${branch} continues from step ${grouped(step)}; ${stays}. In cells it is loop.run.`;
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
