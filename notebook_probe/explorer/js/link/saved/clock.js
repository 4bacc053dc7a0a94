import { firstFrom } from "../../plots/knots.js";

/**
 * Step -> seconds since the run began, in proportion between two steps that were saved.
 * @param {SavedClock} saved
 * @returns {(step: number) => number}
 */
export function createClock({ steps, seconds }) {
  return (step) => {
    const after = firstFrom(steps, step);
    if (after === 0 || after === steps.length) return seconds[Math.min(after, steps.length - 1)] ?? 0;
    const share = (step - steps[after - 1]) / (steps[after] - steps[after - 1]);
    return seconds[after - 1] + share * (seconds[after] - seconds[after - 1]);
  };
}
