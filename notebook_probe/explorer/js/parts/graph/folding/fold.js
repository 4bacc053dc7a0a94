/** A graph with some modules open: boxes in boxes, and the edges between those that lie side by side. */

import { callsOf } from "./calls.js";

/** In place of a box: where edges come into an open module, and where they leave it. */
export const IN = -1;
export const OUT = -2;

/**
 * The scope of the whole network, `{ path, boxes, edges }`. A box is `{ key, path, nodes, scope }`: a
 * module, with a scope where it is open, or one node, whose `path` is null. An edge is
 * `{ from, to, source, n }`: places of boxes, IN or OUT, the node it leaves first, how many it stands for.
 */
export function foldGraph(network, open) {
  return scopeOf(network, open, "", network.shown, "");
}

/**
 * Whether there is something to see in a box: more than one node.
 * @param {GraphBox} box
 */
export function isOpenable(box) {
  return box.path !== null && box.nodes.length > 1;
}

/**
 * @param {GraphNetwork} network
 * @param {Set<string>} open
 * @param {string} path
 * @param {number[]} ids
 * @param {string} key
 * @returns {GraphScope}
 */
function scopeOf(network, open, path, ids, key) {
  const groupOf = new Map(ids.map((id) => [id, boxedIn(network, open, path, network.nodes[id].module)]));
  const calls = callsOf(network, ids, groupOf);
  /** @type {GraphBox[]} */
  const boxes = [];
  const places = new Map(); // key -> place among the boxes
  const boxOf = new Map(); // node -> place of its box
  for (const id of ids) {
    const inner = groupOf.get(id);
    const own = inner === null ? `#${id}` : `${key}/${inner}@${calls.get(id) ?? 0}`;
    if (!places.has(own)) {
      places.set(own, boxes.length);
      boxes.push({ key: own, path: inner, nodes: [], scope: null });
    }
    const place = places.get(own);
    boxes[place].nodes.push(id);
    boxOf.set(id, place);
  }
  for (const box of boxes) {
    if (isOpenable(box) && open.has(box.path)) {
      box.scope = scopeOf(network, open, box.path, box.nodes, box.key);
    }
  }
  return { path, boxes, edges: edgesOf(network, ids, boxOf, boxes.length) };
}

/**
 * The module whose box stands right in the frame of `path`: an open loose container has no frame.
 * @param {{ loose: Set<string> }} network
 * @param {Set<string>} open
 * @param {string} path
 * @param {string} module
 */
function boxedIn({ loose }, open, path, module) {
  let found = childOf(path, module);
  while (loose.has(found) && open.has(found)) found = childOf(found, module);
  return found;
}

/**
 * The module right below `path` that holds `module`, null where that is `path` itself.
 * @param {string} path
 * @param {string} module
 */
function childOf(path, module) {
  if (module === path) return null;
  const end = module.indexOf(".", path ? path.length + 1 : 0);
  return end < 0 ? module : module.slice(0, end);
}

function edgesOf({ into, out }, ids, boxOf, n) {
  const edges = new Map();
  const add = (from, to, source) => {
    const name = (from + 2) * (n + 2) + to + 2;
    const known = edges.get(name);
    if (known) known.n += 1;
    else edges.set(name, { from, to, source, n: 1 });
  };
  for (const id of ids) {
    const box = boxOf.get(id);
    for (const from of into[id]) if (!boxOf.has(from)) add(IN, box, from);
    for (const to of out[id]) {
      const target = boxOf.get(to) ?? OUT;
      if (target !== box) add(box, target, id);
    }
  }
  return [...edges.values()];
}
