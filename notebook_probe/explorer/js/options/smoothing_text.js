/** The smoothing in words. */

import { significant } from "../format.js";

/**
 * What the average is of, and where it is held back.
 * @param {Pick<PanelState, "selection" | "lines">} state
 */
export function smoothingText({ selection: { smooth }, lines }) {
  if (!smooth) return "Every value as it was recorded.";
  const of = `The running average of about ${significant(1 / (1 - smooth), 2)} recorded values.`;
  const drawn = (lines?.series ?? []).map((one) => one.weight).filter((one) => one < smooth);
  if (!drawn.length || lines?.smooth !== smooth) return of;
  const least = significant(Math.min(...drawn), 2);
  return `${of} Held at ${least} where few are recorded: a tenth of them at most.`;
}
