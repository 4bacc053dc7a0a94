/** Text of a box of the graph. */

import { grouped } from "../../format.js";
import { valueAt } from "../../maps.js";
import { ROOT } from "../../names.js";
import { above } from "./folding/network.js";

/**
 * "8×64×56×56"; "" where it is not known.
 * @param {number[] | null} shape
 */
export function shapeText(shape) {
  if (!shape) return "";
  return shape.length ? shape.join("×") : "scalar";
}

/**
 * How a module is called in tree and heat map.
 * @param {string} path
 */
export function inTree(path) {
  return path || ROOT;
}

/**
 * What stands in a box: a module's own name and class, or an operator.
 * @param {Pick<GraphNetwork, "nodes" | "modules" | "loose">} network
 * @param {GraphPlace} box
 */
export function boxWords({ nodes, modules, loose }, { path, nodes: [first] }) {
  if (path === null) return { name: nodeName(nodes[first]), kind: "" };
  let frame = above(path);
  while (loose.has(frame)) frame = above(frame); // which has no frame that would name it
  return { name: frame ? path.slice(frame.length + 1) : path, kind: valueAt(modules, path).kind };
}

/** @param {GraphNode} node */
function nodeName({ kind, op, name }) {
  return kind === "operator" ? op : name;
}

/**
 * The node whose output leaves a box: the last that one outside takes, else the last.
 * @param {Pick<GraphNetwork, "out">} network
 * @param {Pick<GraphBox, "nodes">} box
 */
export function lastNode({ out }, { nodes }) {
  const inside = new Set(nodes);
  return nodes.findLast((id) => out[id].some((to) => !inside.has(to))) ?? nodes[nodes.length - 1];
}

/**
 * How many of the calls of a module stand in one box, in words; "" of a single one.
 * @param {Pick<GraphNetwork, "modules">} network
 * @param {GraphPlace} box
 */
export function callsText({ modules }, { path }) {
  const calls = path === null ? 1 : valueAt(modules, path).calls;
  return calls > 1 ? `called ${grouped(calls)} times` : "";
}
