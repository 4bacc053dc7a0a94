/** The order inside each layer: by the mean place of the neighbors, as often as that uncrosses edges. */

import { crossings } from "./crossings.js";

const SWEEPS = 8;

/**
 * Vertices of each layer from left to right, of `{ layerOf, n, links }`.
 * @param {{ layerOf: number[], n: number, links: number[][] }} graph
 */
export function ordered({ layerOf, n, links }) {
  /** @type {number[][]} */
  const layers = [];
  for (let vertex = 0; vertex < n; vertex++) (layers[layerOf[vertex]] ??= []).push(vertex);
  for (let k = 0; k < layers.length; k++) layers[k] ??= [];
  const [above, below] = neighboursOf(n, links);
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(best, below);
  for (let sweep = 0; sweep < SWEEPS && fewest; sweep++) {
    if (sweep % 2) for (let k = layers.length - 2; k >= 0; k--) sortBy(layers, k, k + 1, below);
    else for (let k = 1; k < layers.length; k++) sortBy(layers, k, k - 1, above);
    const count = crossings(layers, below);
    if (count >= fewest) continue;
    fewest = count;
    best = layers.map((layer) => [...layer]);
  }
  return best;
}

/**
 * Of each vertex those above and those below it.
 * @param {number} n
 * @param {number[][]} links
 * @returns {[number[][], number[][]]}
 */
export function neighboursOf(n, links) {
  /** @type {number[][]} */
  const above = Array.from({ length: n }, () => []);
  /** @type {number[][]} */
  const below = Array.from({ length: n }, () => []);
  for (const [from, to] of links) {
    below[from].push(to);
    above[to].push(from);
  }
  return [above, below];
}

/**
 * @param {number[][]} layers
 * @param {number} at
 * @param {number} fixed
 * @param {number[][]} neighbours
 */
function sortBy(layers, at, fixed, neighbours) {
  const places = new Map(layers[fixed].map((vertex, place) => [vertex, place]));
  const wish = new Map();
  layers[at].forEach((vertex, place) => {
    const known = neighbours[vertex].map((one) => places.get(one)).filter((one) => one !== undefined);
    const sum = known.reduce((total, one) => total + one, 0);
    wish.set(vertex, known.length ? sum / known.length : place);
  });
  layers[at].sort((one, other) => wish.get(one) - wish.get(other)); // stable: ties keep their order
}
