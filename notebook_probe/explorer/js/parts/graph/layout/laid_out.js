/** Positions in a folded graph: boxes, frames around open modules, edges. */

import { valueAt } from "../../../maps.js";
import { IN, OUT } from "../folding/fold.js";
import { layered } from "./layers.js";
import { ordered } from "./order.js";
import { placed } from "./places.js";
import { routePoints } from "./routes.js";

/**
 * @typedef {LayoutVertex & {
 *   top: number,
 *   bottom: number,
 *   middle: number,
 *   over: number,
 *   under: number,
 * }} VertexPlace
 */
/** @typedef {{ width: number, height: number, isBend: boolean, in: number, out: number }} LayoutVertex */
/** @typedef {{ network: GraphNetwork, widthOf: (box: GraphBox) => number }} GraphMeasures */

const BOX_HEIGHT = 22;
const NODE_HEIGHT = 18;
const GAP_X = 18;
const GAP_Y = 20; // a line of text fits
const PAD = 10; // between a frame and what is in it
const HEAD = 24; // of a frame, with its name
const BEND = 8; // room that an edge takes in a layer

/**
 * `{ width, height, items, routes }`, all in one plane. An item is a box with its place, the key of the
 * `frame` that it lies in, `depth`, and `isOpen` for the frame of an open module. A route is
 * `{ points, from, to, source, begins, ends }`: keys of the boxes that it joins, the node whose output it
 * is, and whether it really begins and ends there, not inside. `widthOf(box)` is the room of its words.
 * @param {GraphNetwork} network
 * @param {GraphScope} scope
 * @param {(box: GraphBox) => number} widthOf
 * @returns {GraphLayout}
 */
export function laidOut(network, scope, widthOf) {
  return scopeLayout({ network, widthOf }, scope, { depth: 0, frame: null });
}

/**
 * @param {GraphMeasures} given
 * @param {GraphScope} scope
 * @param {{ depth: number, frame: string | null }} within
 * @returns {ScopeLayout}
 */
function scopeLayout(given, scope, within) {
  const n = scope.boxes.length + 2; // where edges come in stands first, where they leave last
  const inner = scope.boxes.map((box) => {
    return box.scope && scopeLayout(given, box.scope, { depth: within.depth + 1, frame: box.key });
  });
  const sizes = scope.boxes.map((box, k) => sizeOf(given, box, inner[k]));
  const ends = scope.edges.map(({ from, to }) => [vertexOf(from, n), vertexOf(to, n)]);
  // Where calls go round in a circle an edge leads upwards.
  const forward = ends.map(([from, to]) => (from < to ? [from, to] : [to, from]));
  const graph = layered(n, forward, rootsOf(given.network, scope));
  const used = new Set(ends.flat());
  /** @type {(vertex: number) => boolean} */
  const isThere = (vertex) => used.has(vertex) || (vertex > 0 && vertex !== n - 1);
  const layers = ordered(graph).map((layer) => layer.filter(isThere)).filter((layer) => layer.length);
  const bends = Array.from({ length: graph.n - n }, () => vertexOfSize([BEND, 0], true));
  const door = vertexOfSize([0, 0]);
  const all = [door, ...sizes.map((size, k) => vertexOfSize(size, false, inner[k])), door, ...bends];
  const middles = placed(layers, graph.links, all, GAP_X);
  const bands = bandsOf(layers, all);
  /** @type {(side: number) => number[]} */
  const edge = (side) => layers.flat().map((one) => middles[one] + (side * all[one].width) / 2);
  const left = edge(-1).reduce((least, one) => Math.min(least, one), Infinity);
  /** @type {(vertex: number) => VertexPlace} */
  const at = (vertex) => placeOf(valueAt(bands, vertex), middles[vertex] - left, all[vertex]);
  const items = scope.boxes.map((box, k) => itemOf(box, at(k + 1), within));
  /** @type {(vertex: number) => VertexPlace} */
  const vertexAt = (vertex) => {
    if (vertex === 0) return { ...at(0), under: -HEAD };
    return vertex === n - 1 ? { ...at(vertex), over: at(vertex).bottom + PAD } : at(vertex);
  };
  const routes = scope.edges.map((edge, k) => {
    const isBack = ends[k][0] > ends[k][1];
    const points = routePoints(graph.routes[k].map(vertexAt));
    const [from, to] = [scope.boxes[edge.from], scope.boxes[edge.to]];
    return {
      points: isBack ? points.reverse() : points,
      from: from?.key ?? null,
      to: to?.key ?? null,
      source: edge.source,
      begins: Boolean(from && !from.scope),
      ends: Boolean(to && !to.scope),
    };
  });
  const inside = items.map((item, k) => inner[k] && moved(inner[k], item.x + inset(item, inner[k]), item.y + HEAD));
  return {
    width: edge(1).reduce((most, one) => Math.max(most, one), left) - left,
    height: layers.length ? valueAt(bands, layers[layers.length - 1][0]).bottom : 0,
    in: used.has(0) ? middles[0] - left : null,
    out: used.has(n - 1) ? middles[n - 1] - left : null,
    items: items.flatMap((item, k) => [item, ...(inside[k]?.items ?? [])]),
    routes: [...routes, ...inside.flatMap((one) => one?.routes ?? [])],
  };
}

/**
 * @param {number} place
 * @param {number} n
 */
function vertexOf(place, n) {
  if (place === IN) return 0;
  return place === OUT ? n - 1 : place + 1;
}

/**
 * Where the data come from: what leads nowhere but to them may stand beside them.
 * @param {GraphNetwork} network
 * @param {GraphScope} scope
 */
function rootsOf({ nodes }, { boxes }) {
  const inputs = boxes.flatMap((box, k) => (nodes[box.nodes[0]].kind === "input" ? [k + 1] : []));
  return [0, ...inputs];
}

/**
 * @param {GraphMeasures} measures
 * @param {GraphBox} box
 * @param {ScopeLayout | null} inner
 * @returns {[number, number]}
 */
function sizeOf({ widthOf }, box, inner) {
  const width = widthOf(box);
  if (inner) return [Math.max(width, inner.width + 2 * PAD), inner.height + HEAD + PAD];
  return [width, box.path === null ? NODE_HEIGHT : BOX_HEIGHT];
}

/**
 * Edges enter and leave in the middle, or where they do inside.
 * @param {number[]} size
 * @param {boolean} [isBend]
 * @param {ScopeLayout | null} [inner]
 * @returns {LayoutVertex}
 */
function vertexOfSize([width, height], isBend = false, inner = null) {
  /** @type {(place: number | null) => number} */
  const door = (place) => (inner === null || place === null ? 0 : place - inner.width / 2);
  const doors = { in: door(inner?.in ?? null), out: door(inner?.out ?? null) };
  return { width, height, isBend, ...doors };
}

/**
 * Of each vertex `{ top, bottom }` of its layer.
 * @param {number[][]} layers
 * @param {LayoutVertex[]} vertices
 */
function bandsOf(layers, vertices) {
  const bands = new Map();
  let top = 0;
  for (const layer of layers) {
    const height = layer.reduce((most, vertex) => Math.max(most, vertices[vertex].height), 0);
    for (const vertex of layer) bands.set(vertex, { top, bottom: top + height });
    top += height + GAP_Y;
  }
  return bands;
}

/**
 * A vertex in the middle of its layer, which goes from `top` to `bottom`.
 * @param {{ top: number, bottom: number }} band
 * @param {number} middle
 * @param {LayoutVertex} vertex
 * @returns {VertexPlace}
 */
function placeOf({ top, bottom }, middle, vertex) {
  const over = (top + bottom - vertex.height) / 2;
  return { ...vertex, top, bottom, middle, over, under: over + vertex.height };
}

/**
 * @param {GraphBox} box
 * @param {VertexPlace} place
 * @param {{ depth: number, frame: string | null }} within
 * @returns {GraphItem}
 */
function itemOf({ scope, ...box }, { middle, width, height, over }, within) {
  return { ...box, ...within, x: middle - width / 2, y: over, width, height, isOpen: scope !== null };
}

/**
 * Room left of what is in a frame.
 * @param {GraphItem} item
 * @param {ScopeLayout} inner
 */
function inset({ width }, inner) {
  return (width - inner.width) / 2;
}

/**
 * @param {ScopeLayout} layout
 * @param {number} x
 * @param {number} y
 * @returns {Pick<GraphLayout, "items" | "routes">}
 */
function moved({ items, routes }, x, y) {
  return {
    items: items.map((item) => ({ ...item, x: item.x + x, y: item.y + y })),
    routes: routes.map((route) => {
      return { ...route, points: route.points.map(([one, other]) => [one + x, other + y]) };
    }),
  };
}
