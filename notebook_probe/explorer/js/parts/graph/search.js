/** Modules and operators by name: what a search finds in a network. */

import { nothingFound } from "../../tree/near_names.js";
import { searchModules } from "../../tree/modules.js";
import { above } from "./folding/network.js";

/**
 * Rows `{ path, kind, name, node }` by glob, class or a part of a name; modules first, `node` null there.
 * @param {SearchRow[]} rows
 * @param {string} query
 */
export function searchNetwork(rows, query) {
  const modules = searchModules(rows.filter((row) => row.node === null), query);
  return modules.length ? modules : searchModules(rows.filter((row) => row.node !== null), query);
}

/**
 * Everything that has a name in a network: modules, then nodes by name and operator.
 * @param {GraphNetwork} network
 * @returns {SearchRow[]}
 */
export function searchRows({ modules, nodes, shown }) {
  const named = [...modules.values()].filter(({ path }) => path);
  return [
    ...named.map(({ path, kind }) => ({ path, kind, name: path.slice(path.lastIndexOf(".") + 1), node: null })),
    ...shown.map((node) => ({ path: nodes[node].name, kind: nodes[node].op, name: nodes[node].op, node })),
  ];
}

/**
 * @param {SearchRow[]} rows
 * @param {string} query
 */
export function whyNothing(rows, query) {
  return nothingFound(rows, query);
}

/**
 * Modules that have to be open for a row to be seen as a box of its own.
 * @param {GraphNetwork} network
 * @param {SearchRow} row
 */
export function around({ nodes }, { path, node }) {
  /** @type {string[]} */
  const paths = [];
  for (let over = node === null ? above(path) : nodes[node].module; over; over = above(over)) paths.push(over);
  return paths;
}
