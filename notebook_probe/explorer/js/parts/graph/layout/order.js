/** The order inside each layer: by the mean place of the neighbours, as often as that uncrosses edges. */

import { crossings } from "./crossings.js";

const SWEEPS = 8;

/** Vertices of each layer from left to right, of `{ layerOf, n, links }`. */
export function ordered({ layerOf, n, links }) {
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

/** Of each vertex those above and those below it. */
export function neighboursOf(n, links) {
  const [above, below] = [0, 1].map(() => Array.from({ length: n }, () => []));
  for (const [from, to] of links) {
    below[from].push(to);
    above[to].push(from);
  }
  return [above, below];
}

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
