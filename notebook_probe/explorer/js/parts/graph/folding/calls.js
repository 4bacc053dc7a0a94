/** Which nodes of a module that is called several times belong to one call. */

/**
 * Node -> number of its call, of the modules in `groupOf` (node -> path, or null) that are called
 * more than once: how often a path to it has left that module before. Calls that do not follow from
 * each other are one.
 */
export function callsOf({ modules, into }, ids, groupOf) {
  const calls = new Map();
  const repeated = new Map(); // path -> first and last place in `ids`
  ids.forEach((id, place) => {
    const path = groupOf.get(id);
    if (path === null || !(modules.get(path).calls > 1)) return;
    if (repeated.has(path)) repeated.get(path)[1] = place;
    else repeated.set(path, [place, place]);
  });
  for (const [path, [first, last]] of repeated) {
    const left = new Map(); // node -> how often
    for (const id of ids.slice(first, last + 1)) {
      const inside = groupOf.get(id) === path;
      let most = 0;
      for (const from of into[id]) {
        const leaves = !inside && groupOf.get(from) === path;
        most = Math.max(most, (left.get(from) ?? 0) + leaves);
      }
      left.set(id, most);
      if (inside) calls.set(id, most);
    }
  }
  return calls;
}
