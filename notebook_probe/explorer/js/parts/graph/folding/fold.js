/** A graph with some modules open: boxes in boxes, and the edges between those that lie side by side. */

import { valueAt, valueOr } from "../../../maps.js";
import { callsOf } from "./calls.js";

/** In place of a box: where edges come into an open module, and where they leave it. */
export const IN = -1;
export const OUT = -2;

/**
 * The scope of the whole network, `{ path, boxes, edges }`. A box is `{ key, path, nodes, scope }`: a
 * module, with a scope where it is open, or one node, whose `path` is null. An edge is
 * `{ from, to, source, n }`: places of boxes, IN or OUT, the node it leaves first, how many it stands for.
 * @param {GraphNetwork} network
 * @param {Set<string>} open
 */
export function foldGraph(network, open) {
  return scopeOf(network, open, "", network.shown, "");
}

/**
 * Whether there is something to see in a box: more than one node.
 * @template {GraphPlace} Box
 * @param {Box} box
 * @returns {box is Box & { path: string }}
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
  /** @type {Map<string, number>} */
  const places = new Map(); // key -> place among the boxes
  /** @type {Map<number, number>} */
  const boxOf = new Map(); // node -> place of its box
  for (const id of ids) {
    const inner = groupOf.get(id) ?? null;
    const own = inner === null ? `#${id}` : `${key}/${inner}@${calls.get(id) ?? 0}`;
    const place = valueOr(places, own, () => boxes.push({ key: own, path: inner, nodes: [], scope: null }) - 1);
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
  while (found !== null && loose.has(found) && open.has(found)) found = childOf(found, module);
  return found;
}

/**
 * The module right below `path` that holds `module`, null where that is `path` itself.
 * @param {string} path
 * @param {string} module
 * @returns {string | null}
 */
function childOf(path, module) {
  if (module === path) return null;
  const end = module.indexOf(".", path ? path.length + 1 : 0);
  return end < 0 ? module : module.slice(0, end);
}

/**
 * @param {Pick<GraphNetwork, "into" | "out">} network
 * @param {number[]} ids
 * @param {Map<number, number>} boxOf
 * @param {number} n
 * @returns {GraphEdge[]}
 */
function edgesOf({ into, out }, ids, boxOf, n) {
  /** @type {Map<number, GraphEdge>} */
  const edges = new Map();
  /** @type {(from: number, to: number, source: number) => void} */
  const add = (from, to, source) => {
    const name = (from + 2) * (n + 2) + to + 2;
    const known = edges.get(name);
    if (known) known.n += 1;
    else edges.set(name, { from, to, source, n: 1 });
  };
  for (const id of ids) {
    const box = valueAt(boxOf, id);
    for (const from of into[id]) if (!boxOf.has(from)) add(IN, box, from);
    for (const to of out[id]) {
      const target = boxOf.get(to) ?? OUT;
      if (target !== box) add(box, target, id);
    }
  }
  return [...edges.values()];
}
