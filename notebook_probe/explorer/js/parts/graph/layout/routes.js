/** The way of an edge through its layers: straight beside boxes, curved between layers. */

/** @typedef {Record<"top" | "bottom" | "middle" | "over" | "under" | "in" | "out", number>} RouteStop */

/**
 * Points `[x, y]` in pairs: between the two of a pair the edge is straight, to the next pair it curves.
 * `stops` are the places of its vertices: it leaves the first below and enters the last above.
 * @param {RouteStop[]} stops
 * @returns {Array<[number, number]>}
 */
export function routePoints(stops) {
  return stops.flatMap(({ top, bottom, middle, over, under, in: enter, out }, k) => {
    if (k === 0) return along(middle + out, under, bottom);
    if (k === stops.length - 1) return along(middle + enter, top, over);
    return along(middle, top, bottom);
  });
}

/**
 * @param {number} x
 * @param {number} top
 * @param {number} bottom
 * @returns {Array<[number, number]>}
 */
function along(x, top, bottom) {
  return [
    [x, top],
    [x, bottom],
  ];
}
