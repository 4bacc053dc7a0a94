/** Layers of a graph, from above to below: each vertex as far down as the longest path to it. */

import { valueOr } from "../../../maps.js";

const MOST_BENDS = 20000; // beyond that edges go straight through what is in between

/**
 * Of vertices 0 … n - 1, the last below all others, and edges `[from, to]` with from < to:
 * `{ layerOf, n, routes, links }`. An edge over several layers bends at a vertex of its own in each,
 * shared by all that leave the same vertex: these are n and above. `routes` are the vertices of each
 * edge, `links` all pairs in neighboring layers. What no vertex in `roots` leads to stands right above
 * what it leads to.
 * @param {number} n
 * @param {number[][]} edges
 * @param {number[]} roots
 */
export function layered(n, edges, roots) {
  const layerOf = edges.length ? longestPaths(n, edges, roots) : Array.from({ length: n }, (_, k) => k);
  const bends = edges.reduce((sum, [from, to]) => sum + layerOf[to] - layerOf[from] - 1, 0);
  const routes = bends > MOST_BENDS ? edges.map((edge) => [...edge]) : bent(layerOf, edges);
  /** @type {Map<string, number[]>} */
  const links = new Map();
  for (const route of routes) {
    route.slice(1).forEach((to, k) => links.set(`${route[k]} ${to}`, [route[k], to]));
  }
  return { layerOf, n: layerOf.length, routes, links: [...links.values()] };
}

/**
 * @param {number} n
 * @param {number[][]} edges
 * @param {number[]} roots
 */
function longestPaths(n, edges, roots) {
  /** @type {number[]} */
  const layerOf = new Array(n).fill(0);
  /** @type {number[][]} */
  const out = Array.from({ length: n }, () => []);
  for (const [from, to] of edges) out[from].push(to);
  const rooted = new Array(n).fill(false);
  for (const root of roots) rooted[root] = true;
  for (let from = 0; from < n; from++) {
    for (const to of out[from]) {
      layerOf[to] = Math.max(layerOf[to], layerOf[from] + 1);
      rooted[to] ||= rooted[from];
    }
  }
  layerOf[n - 1] = layerOf.reduce((most, one) => Math.max(most, one), 0);
  if (layerOf.indexOf(layerOf[n - 1]) < n - 1) layerOf[n - 1] += 1;
  for (let from = n - 1; from >= 0; from--) {
    if (rooted[from] || !out[from].length) continue;
    layerOf[from] = Math.min(...out[from].map((to) => layerOf[to])) - 1;
  }
  return layerOf;
}

/**
 * The routes; `layerOf` gains the vertices where they bend.
 * @param {number[]} layerOf
 * @param {number[][]} edges
 */
function bent(layerOf, edges) {
  /** @type {Map<number, number[]>} */
  const bends = new Map(); // vertex -> those of its edges, layer by layer
  return edges.map(([from, to]) => {
    const own = valueOr(bends, from, () => []);
    const between = layerOf[to] - layerOf[from] - 1;
    while (own.length < between) {
      own.push(layerOf.length);
      layerOf.push(layerOf[from] + own.length);
    }
    return [from, ...own.slice(0, between), to];
  });
}
