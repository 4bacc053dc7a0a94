/** The debiased exponential average; NaN where the input is NaN, and the average goes on after it. */

/** y[k] = sum_i w^(k-i) v[i] / sum_i w^(k-i) over the finite v[i], i <= k. */
export function smoothed(values, weight) {
  const result = new Float64Array(values.length);
  let total = 0;
  let mass = 0;
  for (let k = 0; k < values.length; k++) {
    const value = values[k];
    if (!Number.isFinite(value)) {
      result[k] = NaN;
      continue;
    }
    total = weight * total + value;
    mass = weight * mass + 1;
    result[k] = total / mass;
  }
  return result;
}
