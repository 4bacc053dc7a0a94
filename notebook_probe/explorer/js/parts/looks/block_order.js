/** The order of the tensors of a look. */

import { ROOT } from "../../names.js";

const ORDER = ["output", "attention", "weight", "grad_output", "update", "grad", "input"];

/**
 * The inputs of the model itself are the batch, for which it is looked at.
 * @param {Pick<ShownLook, "module" | "blocks">} look
 */
export function inOrder({ module, blocks }) {
  const order = module === ROOT ? ["input", ...ORDER] : ORDER;
  /** @type {(block: ShownBlock) => number} */
  const rank = ({ tensor }) => (order.includes(tensor) ? order.indexOf(tensor) : order.length);
  return [...blocks].sort((one, other) => rank(one) - rank(other));
}
