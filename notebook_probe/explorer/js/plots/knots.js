/** Steps and their positions on the x axis, in proportion between two known ones and beyond the ends. */

/**
 * @param {LinesFrame["knots"]} knots
 * @returns {StepMapping}
 */
export function alongKnots(knots) {
  const steps = knots.map(([step]) => step);
  const places = knots.map(([, place]) => place);
  return { x: (step) => between(steps, places, step), step: (x) => between(places, steps, x) };
}

/**
 * @param {number[]} from increasing
 * @param {number[]} to
 * @param {number} value
 */
function between(from, to, value) {
  const after = Math.min(Math.max(firstFrom(from, value), 1), from.length - 1);
  const share = (value - from[after - 1]) / (from[after] - from[after - 1]);
  return to[after - 1] + share * (to[after] - to[after - 1]);
}

/**
 * Place of the first number that is not below `value`.
 * @param {number[]} numbers
 * @param {number} value
 */
export function firstFrom(numbers, value) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
