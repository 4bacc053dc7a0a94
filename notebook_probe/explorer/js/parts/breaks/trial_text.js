/** Text: steps at which a breakpoint on a series would have paused so far. */

import { grouped, significant } from "../../format.js";

const EVERY_STEP = ["every(1)", "flight"];

/**
 * @param {string} name of the series
 * @param {BreakpointTrial | null} trial
 * @param {string | undefined} schedule
 */
export function trialText(name, trial, schedule) {
  const sentences = [];
  if (trial) {
    if (trial.now === null) sentences.push("No value yet.");
    else sentences.push(`now ${significant(trial.now)}, usually ${significant(trial.usual)}.`);
    if (trial.now !== null && trial.n_steps !== null) sentences.push(wouldHave(trial.steps, trial.n_steps));
  }
  if (schedule && !EVERY_STEP.includes(schedule)) {
    sentences.push(`${name} is measured ${schedule}: checked at those steps.`);
  }
  return sentences.join(" ");
}

/**
 * @param {number[]} steps
 * @param {number} n
 */
function wouldHave(steps, n) {
  if (!n) return "Would not have paused so far.";
  const shown = steps.map((one) => grouped(one)).join(", ");
  const times = n === 1 ? "once" : `${grouped(n)} times`;
  const more = n > steps.length ? ", …" : "";
  return `Would have paused ${times} so far: ${n === 1 ? "step" : "steps"} ${shown}${more}`;
}
