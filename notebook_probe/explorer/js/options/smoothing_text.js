/** The smoothing in words. */

import { significant } from "../format.js";

/**
 * What the average is of, and where it is held back.
 * @param {number} smooth
 * @param {number[]} weights of the lines that are drawn so
 */
export function smoothingText(smooth, weights) {
  if (!smooth) return "Every value as it was recorded.";
  const of = `The running average of about ${significant(1 / (1 - smooth), 2)} recorded values.`;
  const drawn = weights.filter((one) => one < smooth);
  if (!drawn.length) return of;
  const least = significant(Math.min(...drawn), 2);
  return `${of} Less in lines of few values, down to ${least}: over a tenth of them at most.`;
}
