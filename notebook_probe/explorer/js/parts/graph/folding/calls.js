/** Which nodes of a module that is called several times belong to one call. */

/**
 * Node -> number of its call, of the modules in `groupOf` (node -> path, or null) that are called more
 * than once: a call is a run of nodes that are done one after the other. So no call waits for a later one.
 */
export function callsOf({ modules }, ids, groupOf) {
  const calls = new Map();
  const begun = new Map(); // path -> how many calls
  let before = null;
  for (const id of ids) {
    const path = groupOf.get(id);
    if (path !== null && modules.get(path).calls > 1) {
      if (path !== before) begun.set(path, (begun.get(path) ?? 0) + 1);
      calls.set(id, begun.get(path) - 1);
    }
    before = path;
  }
  return calls;
}
