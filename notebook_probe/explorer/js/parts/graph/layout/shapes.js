/** The shapes that are written below boxes, where nothing is in their way. */

import { valueOr } from "../../../maps.js";
import { shapeText } from "../words.js";

const LETTER = 8.5; // width of one, where all is drawn small
const DOWN = 9; // below the box
const GAP = 5; // beside the edge
const CLEAR = 14; // to what lies beside it
const UPRIGHT = 7; // an edge that goes no further to a side leaves room there

/**
 * `{ x, y, text, align }` beside the beginning of edges: right of it, else left, else not at all.
 * @param {Pick<GraphNetwork, "nodes">} network
 * @param {Pick<GraphLayout, "items" | "routes">} layout
 * @returns {GraphLabel[]}
 */
export function shapeLabels({ nodes }, { items, routes }) {
  const frames = new Map(items.filter(({ isOpen }) => isOpen).map((item) => [item.key, item]));
  /** @type {Map<string, GraphRoute[]>} */
  const leaving = new Map(); // key of a box -> its edges
  for (const route of routes) {
    if (route.begins && route.from !== null) valueOr(leaving, route.from, () => []).push(route);
  }
  const bends = bendsOf(routes);
  /** @type {GraphLabel[]} */
  const labels = [];
  for (const row of rowsOf(items)) {
    let taken = -Infinity; // up to here by the shape before
    row.forEach((box, k) => {
      const edges = leaving.get(box.key) ?? [];
      const text = edges.length ? shapeText(nodes[edges[0].source].shape) : "";
      if (!text) return;
      const width = text.length * LETTER + GAP;
      const [x, y] = edges[0].points[0];
      const beside = [row[k - 1], row[k + 1]].filter(Boolean).map((one) => one.x + one.width / 2);
      const passing = bends.get(levelOf(box)) ?? [];
      const frame = box.frame === null ? undefined : frames.get(box.frame);
      const room = roomBeside(x, edges, [...beside, ...passing], frame);
      room.left = Math.min(room.left, x - taken);
      const side = room.right > width ? 1 : room.left > width ? -1 : 0;
      if (!side) return;
      taken = side > 0 ? x + width : x;
      labels.push({ x: x + side * GAP, y: y + DOWN, text, align: side > 0 ? "left" : "right" });
    });
  }
  return labels;
}

/**
 * How far nothing lies to the left and to the right of where edges leave a box.
 * @param {number} x
 * @param {GraphRoute[]} edges
 * @param {number[]} others
 * @param {GraphItem | undefined} frame
 */
function roomBeside(x, edges, others, frame) {
  const turns = edges.map(({ points }) => (points[2] ?? points[1])[0] - x);
  const wall = frame ? { left: x - frame.x, right: frame.x + frame.width - x } : { left: Infinity, right: Infinity };
  /** @type {(side: number) => number} */
  const nearest = (side) => {
    const far = others.map((other) => (other - x) * side).filter((distance) => distance > 0);
    return Math.min(...far.map((distance) => distance - CLEAR));
  };
  return {
    left: turns.some((turn) => turn < -UPRIGHT) ? 0 : Math.min(nearest(-1), wall.left),
    right: turns.some((turn) => turn > UPRIGHT) ? 0 : Math.min(nearest(1), wall.right),
  };
}

/**
 * Level -> where edges leave it, and where they are half-way to the next.
 * @param {GraphRoute[]} routes
 */
function bendsOf(routes) {
  /** @type {Map<number, Set<number>>} */
  const bends = new Map();
  for (const { points } of routes) {
    for (let k = 1; k < points.length - 2; k += 2) {
      const [x, y] = points[k];
      const [next] = points[k + 1];
      const level = Math.round(y);
      valueOr(bends, level, () => new Set()).add(x).add((x + next) / 2);
    }
  }
  return bends;
}

/**
 * Boxes whose lower edges are level, from left to right.
 * @param {GraphItem[]} items
 */
function rowsOf(items) {
  /** @type {Map<number, GraphItem[]>} */
  const rows = new Map();
  for (const item of items) {
    valueOr(rows, levelOf(item), () => []).push(item);
  }
  return [...rows.values()].map((row) => row.sort((one, other) => one.x - other.x));
}

/** @param {GraphItem} item */
function levelOf({ y, height }) {
  return Math.round(y + height);
}
