/** The recorded series that a search finds. */

import { seriesName } from "../names.js";
import { measured } from "../state.js";

/**
 * Every recorded pair whose name contains all words of a query in small letters; logged ones first.
 * @param {Pick<PanelState, "status">} state
 * @param {string} query
 * @returns {Array<[string, string]>}
 */
export function recordedSeries({ status }, query) {
  const words = query.split(/[\s·]+/).filter(Boolean);
  return [...status.logged, ...measured(status)].flatMap((quantity) =>
    (status.recorded[quantity] ?? []).flatMap((module) => {
      const lower = seriesName(module, quantity).toLowerCase();
      /** @type {[string, string]} */
      const pair = [module, quantity];
      return words.every((one) => lower.includes(one)) ? [pair] : [];
    }),
  );
}
