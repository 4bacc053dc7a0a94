/** A graph as the kernel sends it, with what is asked of it again and again. */

import { valueAt, valueOr } from "../../../maps.js";

const WITHIN = new Set(["parameter", "buffer", "constant"]); // said of what takes them, no boxes of their own

/**
 * `{ nodes, shown, into, out, modules, children, loose }`: `shown` are the places of the nodes that get
 * boxes, `into` and `out` the neighbors of each among them, `modules` path -> its row, `children` path ->
 * paths right below it. `loose` are containers whose modules are called here and there.
 * @param {ShownGraph} message
 * @returns {GraphNetwork}
 */
export function networkOf(message) {
  /** @type {GraphNode[]} */
  const nodes = message.nodes.map(([name, kind, op, module, shape, dtype]) => {
    return { name, kind, op, module, shape, dtype, given: [] };
  });
  const shown = [...nodes.keys()].filter((place) => !WITHIN.has(nodes[place].kind));
  /** @type {number[][]} */
  const into = nodes.map(() => []);
  /** @type {number[][]} */
  const out = nodes.map(() => []);
  for (const [from, to] of message.edges) {
    if (WITHIN.has(nodes[from].kind)) nodes[to].given.push(nodes[from].name);
    else if (!WITHIN.has(nodes[to].kind)) {
      into[to].push(from);
      out[from].push(to);
    }
  }
  const tree = treeOf(message.modules, nodes);
  return { nodes, shown, into, out, ...tree, loose: looseOf(tree, nodes, shown, message.how), how: message.how };
}

/**
 * Paths of what is never called itself, such as a ModuleList, and whose modules are called with others in
 * between, as the halves of a U-Net: a frame around them would say nothing of what follows what.
 * @param {Pick<GraphNetwork, "modules">} tree
 * @param {GraphNode[]} nodes
 * @param {number[]} shown
 * @param {string} how
 * @returns {Set<string>}
 */
function looseOf({ modules }, nodes, shown, how) {
  /** @type {Map<string, number>} */
  const runs = new Map(); // path -> how many runs of nodes
  let before = "";
  for (const place of shown) {
    const { module } = nodes[place];
    for (let path = module; path; path = above(path)) {
      if (valueAt(modules, path).calls === 0 && !isIn(before, path)) runs.set(path, (runs.get(path) ?? 0) + 1);
    }
    before = module;
  }
  const found = [...runs].filter(([, n]) => n > 1).map(([path]) => path);
  return new Set(how === "tree" ? [] : found);
}

/**
 * @param {string} module
 * @param {string} path
 */
function isIn(module, path) {
  return module === path || module.startsWith(`${path}.`);
}

/**
 * Modules by path, and what lies right below each; one that is missing in the table is there, too.
 * @param {ShownGraph["modules"]} table
 * @param {GraphNode[]} nodes
 */
function treeOf(table, nodes) {
  /** @type {Map<string, GraphModule>} */
  const modules = new Map(
    table.map(([path, kind, nParams, calls]) => [path, { path, kind, nParams, calls }]),
  );
  for (const { module } of nodes) {
    for (let path = module; !modules.has(path); path = above(path)) {
      modules.set(path, { path, kind: "", nParams: 0, calls: 1 });
      if (!path) break;
    }
  }
  /** @type {Map<string, string[]>} */
  const children = new Map();
  for (const path of modules.keys()) {
    if (!path) continue;
    valueOr(children, above(path), () => []).push(path);
  }
  return { modules, children };
}

/**
 * The path right above one, "" above those of the first level.
 * @param {string} path
 */
export function above(path) {
  return path.slice(0, Math.max(0, path.lastIndexOf(".")));
}
