/** The shapes that are written below boxes, where nothing is in their way. */

import { shapeText } from "../words.js";

const LETTER = 8.5; // width of one, where all is drawn small
const DOWN = 9; // below the box
const GAP = 5; // beside the edge
const CLEAR = 14; // to what lies beside it
const UPRIGHT = 7; // an edge that goes no further to a side leaves room there

/** `{ x, y, text, align }` beside the beginning of edges: right of it, else left, else not at all. */
export function shapeLabels({ nodes }, { items, routes }) {
  const frames = new Map(items.filter(({ isOpen }) => isOpen).map((item) => [item.key, item]));
  const leaving = new Map(); // key of a box -> its edges
  for (const route of routes) {
    if (!route.begins) continue;
    if (!leaving.has(route.from)) leaving.set(route.from, []);
    leaving.get(route.from).push(route);
  }
  const labels = [];
  for (const row of rowsOf(items)) {
    let taken = -Infinity; // up to here by the shape before
    row.forEach((box, k) => {
      const edges = leaving.get(box.key) ?? [];
      const text = edges.length ? shapeText(nodes[edges[0].source].shape) : "";
      if (!text) return;
      const width = text.length * LETTER + GAP;
      const [x, y] = edges[0].points[0];
      const room = roomBeside(x, edges, row[k - 1], row[k + 1], frames.get(box.frame));
      room.left = Math.min(room.left, x - taken);
      const side = room.right > width ? 1 : room.left > width ? -1 : 0;
      if (!side) return;
      taken = side > 0 ? x + width : x;
      labels.push({ x: x + side * GAP, y: y + DOWN, text, align: side > 0 ? "left" : "right" });
    });
  }
  return labels;
}

/** How far nothing lies to the left and to the right of where edges leave a box. */
function roomBeside(x, edges, before, after, frame) {
  const turns = edges.map(({ points }) => (points[2] ?? points[1])[0] - x);
  const middle = (box, side) => (box ? (box.x + box.width / 2 - x) * side - CLEAR : Infinity);
  const wall = frame ? [x - frame.x, frame.x + frame.width - x] : [Infinity, Infinity];
  return {
    left: turns.some((turn) => turn < -UPRIGHT) ? 0 : Math.min(middle(before, -1), wall[0]),
    right: turns.some((turn) => turn > UPRIGHT) ? 0 : Math.min(middle(after, 1), wall[1]),
  };
}

/** Boxes whose lower edges are level, from left to right. */
function rowsOf(items) {
  const rows = new Map();
  for (const item of items) {
    const level = Math.round(item.y + item.height);
    if (!rows.has(level)) rows.set(level, []);
    rows.get(level).push(item);
  }
  return [...rows.values()].map((row) => row.sort((one, other) => one.x - other.x));
}
