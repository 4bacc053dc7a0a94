/** Axes: a transform (linear, log, log(1 + x)), whole ticks, and an affine map to pixels. */

import { grouped, significant } from "./format.js";

const IDENTITY = { forward: (v) => v, back: (u) => u };
const LOG10 = { forward: (v) => Math.log10(v), back: (u) => 10 ** u };
const LOG1P = { forward: (v) => Math.log1p(v), back: (u) => Math.expm1(u) };

/** A scale maps values to pixels between `from` and `to`; `factor` and `offset` act after `forward`. */
function scaleOf(transform, low, high, ticks, from, to) {
  const [start, stop] = [transform.forward(low), transform.forward(high)];
  const factor = (to - from) / (stop - start || 1);
  const offset = from - start * factor;
  return {
    ...transform,
    low,
    high,
    ticks,
    factor,
    offset,
    place: (value) => transform.forward(value) * factor + offset,
    value: (pixel) => transform.back((pixel - offset) / factor),
  };
}

/** A value axis: its ends are whole ticks, so it jumps seldom instead of creeping with each frame. */
export function valueScale(low, high, log, from, to, count) {
  const {
    low: start,
    high: stop,
    ticks,
  } = log ? logTicks(low, high, count) : linearTicks(low, high, count);
  return scaleOf(log ? LOG10 : IDENTITY, start, stop, ticks, from, to);
}

/** The step axis: exactly the window while zoomed, else up to the next quarter of a tick. */
export function stepScale(low, high, zoomed, log, from, to, label = stepLabel) {
  const tick = niceStep((high - low) / 8);
  const stop = zoomed ? high : Math.ceil((high - low) / (tick / 4)) * (tick / 4) + low;
  const values = log ? decadesFromZero(low, stop) : multiples(low, stop, Math.max(tick, 1e-9));
  const ticks = values.map((value) => ({ value, label: label(value) }));
  return scaleOf(log ? LOG1P : IDENTITY, low, stop, ticks, from, to);
}

/** 1, 2 or 5 times a power of ten, not below `raw` (but for rounding). */
function niceStep(raw) {
  const power = 10 ** Math.floor(Math.log10(raw || 1) + 1e-9);
  const lead = [1, 2, 5].find((one) => raw / power <= one + 1e-9) ?? 10;
  return power * lead;
}

function linearTicks(low, high, count) {
  const [start, stop] = low === high ? widened(low) : [low, high];
  const step = niceStep((stop - start) / count);
  const first = Math.floor(start / step + 1e-9);
  const last = Math.ceil(stop / step - 1e-9);
  const ticks = [];
  for (let k = first; k <= last; k++)
    ticks.push({ value: k * step, label: tickLabel(k * step, step) });
  return { low: first * step, high: last * step, ticks };
}

/** Ends at 1, 2 or 5 times a power of ten; beyond two decades only powers carry a label. */
function logTicks(low, high, count) {
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

function decadesFromZero(low, high) {
  const values = low <= 0 ? [0] : [];
  for (let power = 1; power <= high; power *= 10) if (power >= low) values.push(power);
  return values.length > 1 ? values : [low, high];
}

function multiples(low, high, step) {
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++)
    values.push(k * step);
  return values;
}

function widened(value) {
  const margin = Math.abs(value) * 0.1 || 1;
  return [value - margin, value + margin];
}

function tickLabel(value, step) {
  if (Math.abs(value) >= 1e6 || step < 1e-4)
    return significant(Math.abs(value) < step / 2 ? 0 : value);
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))).replace("-", "−");
}

function stepLabel(value) {
  return Number.isInteger(value) ? grouped(value) : significant(value, 6);
}
