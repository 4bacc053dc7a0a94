/** Positions of runs in a picture, and the run next to the pointer. */

const NEAR = 9; // pixels
const MARGIN = { left: 46, right: 46, top: 52, bottom: 14 };
const SCATTER_MARGIN = { left: 62, right: 24, top: 14, bottom: 36 };
const LEAST_BETWEEN = 84; // pixels between two parallel axes: room for their names

/**
 * Axes side by side, as many as there is room for; a run is a line across them.
 * @param {RunAxis[]} all
 * @param {TableRows} rows
 * @param {{ width: number, height: number }} size
 * @returns {RunPlaces}
 */
export function parallelPlaces(all, rows, { width, height }) {
  const room = width - MARGIN.left - MARGIN.right;
  const axes = all.slice(0, Math.max(2, Math.floor(room / LEAST_BETWEEN) + 1));
  const step = axes.length > 1 ? room / (axes.length - 1) : 0;
  const [top, bottom] = [MARGIN.top, height - MARGIN.bottom];
  const xs = axes.map((_, k) => MARGIN.left + k * step);
  const shares = sharesOf(axes, rows);
  /** @param {number} share */
  const yOf = (share) => bottom - share * (bottom - top);
  return {
    kind: "parallel",
    axes,
    box: [MARGIN.left, top, width - MARGIN.right, bottom],
    xs,
    shares,
    yOf,
    shareAt: (_, y) => (bottom - y) / (bottom - top),
    nearest(x, y, among) {
      const k = Math.max(0, Math.min(Math.floor((x - MARGIN.left) / (step || 1)), axes.length - 2));
      const t = step ? (x - xs[k]) / step : 0;
      return closest(among, (at) => {
        const [from, to] = [shares[k]?.[at], shares[k + 1]?.[at]];
        return Math.abs(yOf(from + (to - from) * t) - y);
      });
    },
  };
}

/**
 * Two axes across each other; a run is a point.
 * @param {RunAxis[]} axes of x and y
 * @param {TableRows} rows
 * @param {{ width: number, height: number }} size
 * @returns {RunPlaces}
 */
export function scatterPlaces(axes, rows, { width, height }) {
  const { left, right, top, bottom } = SCATTER_MARGIN;
  const [high, low] = [top, height - bottom];
  const wide = width - left - right;
  const shares = sharesOf(axes, rows);
  /** @param {number} share */
  const yOf = (share) => low - share * (low - high);
  /** @param {number} share */
  const xOf = (share) => left + share * wide;
  return {
    kind: "scatter",
    axes,
    box: [left, high, width - right, low],
    xs: [],
    shares,
    yOf,
    xOf,
    shareAt: (k, at) => (k === 0 ? (at - left) / wide : (low - at) / (low - high)),
    nearest: (x, y, among) =>
      closest(among, (at) => Math.hypot(xOf(shares[0][at]) - x, yOf(shares[1][at]) - y)),
  };
}

/**
 * Axis, then row -> 0…1; NaN without a value.
 * @param {RunAxis[]} axes
 * @param {TableRows} rows
 */
function sharesOf(axes, rows) {
  return axes.map((axis) => {
    const column = rows.columns.get(axis.name);
    return Float64Array.from(rows.runs, (_, at) =>
      column ? axis.at(column.keys[at] ?? null, column.texts[at] ?? "") : NaN,
    );
  });
}

/**
 * @param {number[]} among
 * @param {(at: number) => number} away
 */
function closest(among, away) {
  let [best, least] = [-1, NEAR];
  for (const at of among) {
    const far = away(at);
    if (far < least) [best, least] = [at, far];
  }
  return best;
}
