/** Number of crossings of edges. */

/**
 * How many pairs of edges between neighboring layers cross.
 * @param {number[][]} layers
 * @param {number[][]} below
 */
export function crossings(layers, below) {
  let count = 0;
  for (let k = 0; k + 1 < layers.length; k++) {
    const places = new Map(layers[k + 1].map((vertex, place) => [vertex, place]));
    const ends = layers[k].flatMap((vertex) => {
      const known = below[vertex].map((one) => places.get(one)).filter((one) => one !== undefined);
      return known.sort((one, other) => one - other);
    });
    count += inversions(ends, layers[k + 1].length);
  }
  return count;
}

/**
 * Pairs in the wrong order, counted in a tree of sums.
 * @param {number[]} values
 * @param {number} n
 */
function inversions(values, n) {
  /** @type {number[]} */
  const sums = new Array(n + 1).fill(0);
  let count = 0;
  values.forEach((value, before) => {
    let upTo = 0;
    for (let k = value + 1; k > 0; k -= k & -k) upTo += sums[k];
    count += before - upTo;
    for (let k = value + 1; k <= n; k += k & -k) sums[k] += 1;
  });
  return count;
}
