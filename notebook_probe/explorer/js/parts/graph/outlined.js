/** Boxes for marked modules: their own, or the closed box that contains them. */

import { above } from "./folding/network.js";

/**
 * `{ own, holding }` keys of items, for modules and for nodes by their places.
 * @param {GraphLayout} layout
 * @param {{ paths: string[], nodes?: number[] }} marked
 */
export function outlined({ items }, { paths, nodes = [] }) {
  /** @type {Map<string, string[]>} */
  const byPath = new Map();
  /** @type {Map<number, { key: string, isOwn: boolean }>} */
  const byNode = new Map();
  for (const { key, path, nodes: inside, isOpen } of items) {
    if (path !== null) byPath.set(path, [...(byPath.get(path) ?? []), key]);
    if (!isOpen) for (const node of inside) byNode.set(node, { key, isOwn: path === null });
  }
  /** @type {Set<string>} */
  const own = new Set();
  /** @type {Set<string>} */
  const holding = new Set();
  for (const path of paths) {
    for (const key of byPath.get(path) ?? []) own.add(key);
    if (byPath.has(path)) continue;
    const within = items.filter((item) => item.path !== null && above(item.path) === path);
    for (const { key } of within) own.add(key); // of a container without a frame
    let over = above(path);
    while (over && !byPath.has(over)) over = above(over);
    for (const key of byPath.get(over) ?? []) holding.add(key);
  }
  for (const node of nodes) {
    const found = byNode.get(node);
    if (found) (found.isOwn ? own : holding).add(found.key);
  }
  return { own, holding };
}
