/** Scales: a transform (linear, log, log(1 + x)), whole ticks, and an affine map to pixels. */

import { grouped, significant } from "../format.js";
import { decadesFromZero, linearTicks, logTicks, multiples, niceStep } from "./ticks.js";

/** @type {Transform} */
const IDENTITY = { forward: (v) => v, inverse: (u) => u };
/** @type {Transform} */
const LOG10 = { forward: (v) => Math.log10(v), inverse: (u) => 10 ** u };
/** @type {Transform} */
const LOG1P = { forward: (v) => Math.log1p(v), inverse: (u) => Math.expm1(u) };

/**
 * A scale maps values to pixels between `from` and `to`; `factor` and `offset` act after `forward`.
 * @param {Transform} transform
 * @param {number} low
 * @param {number} high
 * @param {Tick[]} ticks
 * @param {number} from
 * @param {number} to
 * @param {number | null} [lane]
 * @returns {Axis}
 */
function createScale(transform, low, high, ticks, from, to, lane = null) {
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
    /** Middle of the lane of what has no logarithm, or null. */
    lane,
    /** Pixel of a transformed value; minus infinity lies in the lane. */
    at: (u) => (u === -Infinity && lane !== null ? lane : u * factor + offset),
    place: (value) => transform.forward(value) * factor + offset,
    value: (pixel) => transform.inverse((pixel - offset) / factor),
  };
}

/** Height of the lane below the lowest decade, where 0 and what is below it lies. */
export const LANE_PX = 18;

/**
 * A logarithmic axis with a lane for 0 below it; pixels grow downwards.
 * @param {number} low
 * @param {number} high
 * @param {number} from
 * @param {number} to
 * @param {number} count
 */
export function laneScale(low, high, from, to, count) {
  const { low: start, high: stop, ticks } = logTicks(low, high, count);
  return createScale(LOG10, start, stop, ticks, from - LANE_PX, to, from - LANE_PX / 2);
}

/**
 * A value axis: its ends are whole ticks, so it jumps seldom instead of creeping with each frame.
 * @param {number} low
 * @param {number} high
 * @param {boolean} log
 * @param {number} from
 * @param {number} to
 * @param {number} count
 */
export function valueScale(low, high, log, from, to, count) {
  const {
    low: start,
    high: stop,
    ticks,
  } = log ? logTicks(low, high, count) : linearTicks(low, high, count);
  return createScale(log ? LOG10 : IDENTITY, start, stop, ticks, from, to);
}

/**
 * A value axis with given ends.
 * @param {number} low
 * @param {number} high
 * @param {boolean} log
 * @param {number} from
 * @param {number} to
 * @param {number} count
 */
export function exactScale(low, high, log, from, to, count) {
  const { ticks } = log ? logTicks(low, high, count) : linearTicks(low, high, count);
  const inside = ticks.filter(({ value }) => value >= low && value <= high);
  return createScale(log ? LOG10 : IDENTITY, low, high, inside, from, to);
}

const OF_STEPS = { label: stepLabel, least: 1 };

/**
 * The step axis: exactly the window while zoomed, else up to the next quarter of a tick.
 * @param {number} low
 * @param {number} high
 * @param {boolean} zoomed
 * @param {boolean} log
 * @param {number} from
 * @param {number} to
 * @param {{ label: (value: number) => string, least: number }} [kind]
 */
export function stepScale(low, high, zoomed, log, from, to, { label, least } = OF_STEPS) {
  const tick = Math.max(niceStep((high - low) / 8), least); // there are no halves of a step
  const stop = zoomed ? high : Math.ceil((high - low) / (tick / 4)) * (tick / 4) + low;
  const values = log ? decadesFromZero(low, stop) : multiples(low, stop, tick);
  const ticks = values.map((value) => ({ value, label: label(value) }));
  return createScale(log ? LOG1P : IDENTITY, low, stop, ticks, from, to);
}

/** @param {number} value */
function stepLabel(value) {
  return Number.isInteger(value) ? grouped(value) : significant(value, 6);
}
