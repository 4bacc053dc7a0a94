/** Grouping of nodes by call, for a module that is called several times. */

import { valueAt } from "../../../maps.js";

/**
 * Node -> number of its call, of the modules in `groupOf` (node -> path, or null) that are called more
 * than once: a call is a run of nodes that are done one after the other. So no call waits for a later one.
 * @param {Pick<GraphNetwork, "modules">} network
 * @param {number[]} ids
 * @param {Map<number, string | null>} groupOf
 */
export function callsOf({ modules }, ids, groupOf) {
  /** @type {Map<number, number>} */
  const calls = new Map();
  /** @type {Map<string, number>} */
  const begun = new Map(); // path -> how many calls
  /** @type {string | null} */
  let before = null;
  for (const id of ids) {
    const path = groupOf.get(id) ?? null;
    if (path !== null && valueAt(modules, path).calls > 1) {
      if (path !== before) begun.set(path, (begun.get(path) ?? 0) + 1);
      calls.set(id, valueAt(begun, path) - 1);
    }
    before = path;
  }
  return calls;
}
