/** Moves by arrow keys in the graph: along edges up and down, sideways to the nearest box. */

/** @type {Record<string, ["from" | "to", "from" | "to"]>} */
const ALONG = { ArrowDown: ["from", "to"], ArrowUp: ["to", "from"] };

/**
 * Key of the box that an arrow leads to from the one of key `current`; null where there is none.
 * @param {GraphLayout} layout
 * @param {string | null} current
 * @param {string} arrow
 */
export function neighbour({ items, routes }, current, arrow) {
  const place = items.findIndex(({ key }) => key === current);
  if (place < 0) return items[0]?.key ?? null;
  const here = items[place];
  if (here.isOpen && arrow === "ArrowDown") return items[place + 1].key;
  const linked = new Set(ALONG[arrow] ? linkedBy(routes, current, ALONG[arrow]) : []);
  const along = items.filter(({ key }) => linked.has(key));
  const ahead = along.length ? along : items.filter((item) => isAhead(here, item, arrow));
  return nearest(here, ahead)?.key ?? null;
}

/**
 * Keys at the other end of the edges that have a box at one end.
 * @param {GraphRoute[]} routes
 * @param {string | null} current
 * @param {["from" | "to", "from" | "to"]} ends
 */
function linkedBy(routes, current, [from, to]) {
  return routes.filter((route) => route[from] === current).map((route) => route[to]);
}

/**
 * Whether an item lies where the arrow points, more than to its sides; a frame counts by its head.
 * @param {GraphItem} here
 * @param {GraphItem} item
 * @param {string} arrow
 */
function isAhead(here, item, arrow) {
  const [dx, dy] = [middle(item) - middle(here), item.y - here.y];
  if (arrow === "ArrowDown") return dy > 0;
  if (arrow === "ArrowUp") return dy < 0;
  return (arrow === "ArrowRight" ? dx : -dx) > Math.abs(dy);
}

/**
 * @param {GraphItem} here
 * @param {GraphItem[]} items
 */
function nearest(here, items) {
  /** @type {(item: GraphItem) => number} */
  const far = (item) => Math.hypot(middle(item) - middle(here), item.y - here.y);
  /** @type {GraphItem | null} */
  let best = null;
  for (const item of items) if (best === null || far(item) < far(best)) best = item;
  return best;
}

/** @param {GraphItem} item */
function middle({ x, width }) {
  return x + width / 2;
}
