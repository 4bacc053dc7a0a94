/** Where the arrow keys lead in the graph: along edges up and down, to the nearest box beside. */

const ALONG = { ArrowDown: ["from", "to"], ArrowUp: ["to", "from"] };

/** Key of the box that an arrow leads to from the one of key `current`; null where there is none. */
export function neighbour({ items, routes }, current, arrow) {
  const place = items.findIndex(({ key }) => key === current);
  if (place < 0) return items[0]?.key ?? null;
  const here = items[place];
  if (here.isOpen && arrow === "ArrowDown") return items[place + 1].key;
  const [from, to] = ALONG[arrow] ?? [];
  const linked = new Set(routes.filter((route) => from && route[from] === current).map((route) => route[to]));
  const along = items.filter(({ key }) => linked.has(key));
  const ahead = along.length ? along : items.filter((item) => isAhead(here, item, arrow));
  return nearest(here, ahead)?.key ?? null;
}

/** Whether an item lies where the arrow points, more than to its sides; a frame counts by its head. */
function isAhead(here, item, arrow) {
  const [dx, dy] = [middle(item) - middle(here), item.y - here.y];
  if (arrow === "ArrowDown") return dy > 0;
  if (arrow === "ArrowUp") return dy < 0;
  return (arrow === "ArrowRight" ? dx : -dx) > Math.abs(dy);
}

function nearest(here, items) {
  const far = (item) => Math.hypot(middle(item) - middle(here), item.y - here.y);
  return items.reduce((best, item) => (best === null || far(item) < far(best) ? item : best), null);
}

function middle({ x, width }) {
  return x + width / 2;
}
