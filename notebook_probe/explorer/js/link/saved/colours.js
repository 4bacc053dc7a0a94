/** Colors of series, assigned as the kernel assigns them: a series keeps its color. */

import { valueOr } from "../../maps.js";

const N_COLOURS = 7;

/** @param {SavedMessage["colours"]} given */
export function createColours(given) {
  const bound = new Map(given.map(([module, quantity, colour]) => [keyOf([module, quantity]), colour]));
  return {
    /**
     * Of the `k`-th of these series.
     * @param {PanelSelection["series"]} series
     * @param {number} k
     */
    of(series, k) {
      const key = keyOf(series[k]);
      return valueOr(bound, key, () => free(bound, series.map(keyOf)));
    },
  };
}

/** @type {(series: [string, string]) => string} */
const keyOf = ([module, quantity]) => `${module}\n${quantity}`;

/**
 * A colour nobody ever had, while there is one; then the first that is not on the screen.
 * @param {Map<string, number>} bound
 * @param {string[]} drawn
 */
function free(bound, drawn) {
  const ever = new Set(bound.values());
  for (let colour = 0; colour < N_COLOURS; colour++) if (!ever.has(colour)) return colour;
  const shown = new Set(drawn.map((key) => bound.get(key)));
  let colour = 0;
  while (shown.has(colour)) colour += 1;
  return colour;
}
