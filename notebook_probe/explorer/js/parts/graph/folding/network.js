/** A graph as the kernel sends it, with what is asked of it again and again. */

const WITHIN = new Set(["parameter", "buffer", "constant"]); // said of what takes them, no boxes of their own

/**
 * `{ nodes, shown, into, out, modules, children }`: `shown` are the places of the nodes that get boxes,
 * `into` and `out` the neighbours of each among them, `modules` path -> its row, `children` path ->
 * paths right below it.
 */
export function networkOf(message) {
  const nodes = message.nodes.map(([name, kind, op, module, shape, dtype]) => {
    return { name, kind, op, module, shape, dtype, given: [] };
  });
  const shown = [...nodes.keys()].filter((place) => !WITHIN.has(nodes[place].kind));
  const into = nodes.map(() => []);
  const out = nodes.map(() => []);
  for (const [from, to] of message.edges) {
    if (WITHIN.has(nodes[from].kind)) nodes[to].given.push(nodes[from].name);
    else if (!WITHIN.has(nodes[to].kind)) {
      into[to].push(from);
      out[from].push(to);
    }
  }
  return { nodes, shown, into, out, ...treeOf(message.modules, nodes), how: message.how };
}

/** Modules by path, and what lies right below each; one that is missing in the table is there, too. */
function treeOf(table, nodes) {
  const modules = new Map(
    table.map(([path, kind, nParams, calls]) => [path, { path, kind, nParams, calls }]),
  );
  for (const { module } of nodes) {
    for (let path = module; !modules.has(path); path = above(path)) {
      modules.set(path, { path, kind: "", nParams: 0, calls: 1 });
      if (!path) break;
    }
  }
  const children = new Map();
  for (const path of modules.keys()) {
    if (!path) continue;
    const parent = above(path);
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(path);
  }
  return { modules, children };
}

/** The path right above one, "" above those of the first level. */
export function above(path) {
  return path.slice(0, Math.max(0, path.lastIndexOf(".")));
}
