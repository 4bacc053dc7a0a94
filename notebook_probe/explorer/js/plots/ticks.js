/** Ticks of an axis: whole numbers of a step, powers of ten, and their labels. */

import { significant } from "../format.js";

/**
 * 1, 2 or 5 times a power of ten, not below `raw` (but for rounding).
 * @param {number} raw
 */
export function niceStep(raw) {
  const power = 10 ** Math.floor(Math.log10(raw || 1) + 1e-9);
  const lead = [1, 2, 5].find((one) => raw / power <= one + 1e-9) ?? 10;
  return power * lead;
}

/**
 * @param {number} low
 * @param {number} high
 * @param {number} count
 */
export function linearTicks(low, high, count) {
  const [start, stop] = low === high ? widened(low) : [low, high];
  const step = niceStep((stop - start) / count);
  const first = Math.floor(start / step + 1e-9);
  const last = Math.ceil(stop / step - 1e-9);
  /** @type {Tick[]} */
  const ticks = [];
  for (let k = first; k <= last; k++)
    ticks.push({ value: k * step, label: tickLabel(k * step, step) });
  return { low: first * step, high: last * step, ticks };
}

/**
 * Ends at 1, 2 or 5 times a power of ten; beyond two decades only powers carry a label.
 * @param {number} low
 * @param {number} high
 * @param {number} count
 */
export function logTicks(low, high, count) {
  const steps = [];
  for (let e = Math.floor(Math.log10(low)) - 1; e <= Math.log10(high) + 1; e++) {
    for (const lead of [1, 2, 5]) steps.push({ lead, exponent: e, value: Number(`${lead}e${e}`) });
  }
  const first = steps.findLastIndex((step) => step.value <= low * (1 + 1e-6));
  let last = steps.findIndex((step) => step.value >= high * (1 - 1e-6));
  if (last <= first) last = first + 1;
  const within = steps.slice(first, last + 1);
  const decades = Math.log10(high / low);
  if (decades < 0.5) {
    const even = linearTicks(low, high, count); // on so short a stretch both scales look alike
    if (even.low > 0) return even;
  }
  const stride = Math.ceil(decades / count);
  const labelled = within.filter(
    (s) => decades < 1.7 || (s.lead === 1 && s.exponent % stride === 0),
  );
  const ticks = labelled.map(({ value }) => ({ value, label: significant(value) }));
  return { low: steps[first].value, high: steps[last].value, ticks };
}

/**
 * @param {number} low
 * @param {number} high
 */
export function decadesFromZero(low, high) {
  const values = low <= 0 ? [0] : [];
  for (let power = 1; power <= high; power *= 10) if (power >= low) values.push(power);
  return values.length > 1 ? values : [low, high];
}

/**
 * @param {number} low
 * @param {number} high
 * @param {number} step
 */
export function multiples(low, high, step) {
  /** @type {number[]} */
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++)
    values.push(k * step);
  return values;
}

/** @param {number} value */
function widened(value) {
  const margin = Math.abs(value) * 0.1 || 1;
  return [value - margin, value + margin];
}

/**
 * @param {number} value
 * @param {number} step
 */
function tickLabel(value, step) {
  if (Math.abs(value) >= 1e6 || step < 1e-4)
    return significant(Math.abs(value) < step / 2 ? 0 : value);
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))).replace("-", "−");
}
