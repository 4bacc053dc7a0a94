/** The heat map of a ratio: how far this run is from another, in decades or in spreads. */

import { significant } from "../../format.js";
import { valueOr } from "../../maps.js";
import { stepsOf } from "../../link/frames.js";

/** @typedef {RatioFrame & { buffers: Buffers }} RatioMessage */

/** @type {WeakMap<RatioMessage, DecodedRatio>} */
const decoded = new WeakMap(); // message -> its frame

/**
 * The frame that stands in place of the values; null where these are shown, or none has come yet.
 * @param {Pick<PanelState, "parts" | "selection">} state
 */
export function ratioFrame({ parts, selection }) {
  const message = parts.ratio;
  if (!message || !selection.ratio_to || message.quantity !== selection.home) return null;
  if (message.to !== selection.ratio_to && !selection.grouped) return null;
  return selection.others.includes(message.to) ? frameOf(message) : null;
}

/**
 * As of a heat map of values, whatever is chosen; null before the first.
 * @param {RatioMessage | null} message
 */
export function frameOf(message) {
  if (!message) return null;
  return valueOr(decoded, message, () => decodedRatio(message));
}

/**
 * @param {RatioMessage} message
 * @returns {DecodedRatio}
 */
function decodedRatio({ buffers, ...message }) {
  const halves = new Uint16Array(bytesOf(buffers[0]).slice().buffer);
  const apart = new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
  return {
    ...message,
    index: new Map(message.rows.map((module, row) => [module, row])),
    mean: apart,
    maximum: apart,
    states: bytesOf(buffers[1]),
    steps: stepsOf(buffers[2]),
    low: -message.limit,
    high: message.limit,
    log: false,
    colours: "sign",
    ratio: true,
  };
}

/**
 * "×2.1", "÷4", "+2.5 spreads" of what a cell holds.
 * @param {number} value
 * @param {boolean} signed
 */
export function apartText(value, signed) {
  if (signed) return `${value > 0 ? "+" : ""}${significant(value)} spreads`;
  if (!Number.isFinite(value)) return value > 0 ? "×∞" : "÷∞";
  return `${value >= 0 ? "×" : "÷"}${significant(10 ** Math.abs(value))}`;
}

/**
 * What stands beside the colours.
 * @param {Pick<RatioFrame, "limit" | "signed">} frame
 * @returns {Tick[]}
 */
export function apartTicks({ limit, signed }) {
  if (signed) return [-limit, 0, limit].map((value) => ({ value, label: value ? apartText(value, true) : "same" }));
  /** @type {(value: number, label: string) => Tick} */
  const at = (value, label) => ({ value, label });
  const three = Math.log10(3);
  return [at(-limit, "÷10"), at(-three, "÷3"), at(0, "same"), at(three, "×3"), at(limit, "×10")];
}

/** @param {ArrayBufferView} view */
function bytesOf(view) {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}
