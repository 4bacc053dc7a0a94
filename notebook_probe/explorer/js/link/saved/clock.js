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

/**
 * Place of the first step that is not before `step`.
 * @param {number[]} steps
 * @param {number} step
 */
function firstFrom(steps, step) {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step) low = middle + 1;
    else high = middle;
  }
  return low;
}
