/**
 * Positions of the vertices of each layer: as near to their neighbors as order and widths allow, boxes to
 * boxes and bends to bends. So chains are straight, and an edge that skips a part of one is straight, too.
 */

import { neighboursOf } from "./order.js";

/** @typedef {{ width: number, isBend: boolean, in: number, out: number }} PlacedVertex */

const SWEEPS = 9; // from above, from below, …: the last from above
const [BOX, BEND, END] = [1, 8, 0.2]; // how much a box counts, a bend of an edge, and one at its end

/**
 * Middles by vertex, of layers from left to right. Of each vertex `{ width, isBend, in, out }`: where
 * edges enter and leave it, from its middle.
 * @param {number[][]} layers
 * @param {number[][]} links
 * @param {PlacedVertex[]} vertices
 * @param {number} gap
 */
export function placed(layers, links, vertices, gap) {
  const [above, below] = neighboursOf(vertices.length, links);
  /** @type {number[]} */
  const middles = new Array(vertices.length).fill(0);
  /** @type {(vertex: number, one: number) => number} */
  const downward = (vertex, one) => middles[one] + vertices[one].out - vertices[vertex].in;
  /** @type {(vertex: number, one: number) => number} */
  const upward = (vertex, one) => middles[one] + vertices[one].in - vertices[vertex].out;
  const weights = vertices.map(() => BOX);
  /** @type {(layer: number[]) => void} */
  const spread = (layer) => settle(layer, middles, weights, vertices, gap);
  layers.forEach(spread);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    const [near, wish] = isDown ? [above, downward] : [below, upward];
    for (const layer of isDown ? layers : [...layers].reverse()) {
      for (const vertex of layer) {
        const { isBend } = vertices[vertex];
        const alike = near[vertex].filter((one) => vertices[one].isBend === isBend);
        const wishes = (alike.length ? alike : near[vertex]).map((one) => wish(vertex, one));
        if (wishes.length) middles[vertex] = median(wishes);
        weights[vertex] = isBend ? (alike.length ? BEND : END) : BOX;
      }
      spread(layer);
    }
  }
  return middles;
}

/**
 * Separates the vertices of a layer with the smallest squared moves (isotonic regression): after the
 * widths before them are subtracted, wanted positions must not decrease; neighbors that violate this
 * share their mean.
 * @param {number[]} layer
 * @param {number[]} middles
 * @param {number[]} weights
 * @param {PlacedVertex[]} vertices
 * @param {number} gap
 */
function settle(layer, middles, weights, vertices, gap) {
  /** @type {Array<{ mean: number, weight: number, from: number }>} */
  const blocks = []; // { mean, weight, from }
  /** @type {number[]} */
  const room = [];
  layer.forEach((vertex, k) => {
    const before = layer[k - 1];
    room.push(k ? room[k - 1] + (vertices[before].width + vertices[vertex].width) / 2 + gap : 0);
    blocks.push({ mean: middles[vertex] - room[k], weight: weights[vertex], from: k });
    while (blocks.length > 1 && blocks[blocks.length - 2].mean > blocks[blocks.length - 1].mean) {
      const [one, last] = blocks.splice(-2);
      const weight = one.weight + last.weight;
      const mean = (one.mean * one.weight + last.mean * last.weight) / weight;
      blocks.push({ mean, weight, from: one.from });
    }
  });
  blocks.forEach(({ mean, from }, k) => {
    const to = blocks[k + 1]?.from ?? layer.length;
    for (let at = from; at < to; at++) middles[layer[at]] = mean + room[at];
  });
}

/** @param {number[]} values */
function median(values) {
  const sorted = values.sort((one, other) => one - other);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
