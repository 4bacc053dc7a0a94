/** Averages over what was saved, for a weight that the kernel has not averaged with. */

const SHARE = 10;
const GROWTH = 1.1;

/**
 * Debiased exponential average of `y`, of its logarithms where `log`. Each point stands for `rows`
 * recorded values, so it counts as so many.
 * @param {ArrayLike<number>} y
 * @param {number} weight
 * @param {number} rows
 * @param {boolean} log
 */
export function averageOf(y, weight, rows, log) {
  const each = capped(weight, y.length * rows) ** rows;
  let [sum, mass] = [0, 0];
  return Float32Array.from(y, (one) => {
    const value = log ? Math.log(one) : one;
    if (!Number.isFinite(value)) return NaN;
    sum = each * sum + value;
    mass = each * mass + 1;
    return log ? Math.exp(sum / mass) : sum / mass;
  });
}

/**
 * At most 1 − 10/n, as the kernel has it.
 * @param {number} weight
 * @param {number} n
 */
function capped(weight, n) {
  if (n <= SHARE) return 0;
  return Math.min(weight, 1 - GROWTH ** -Math.floor(Math.log(n / SHARE) / Math.log(GROWTH)));
}
