/** Series as the axes place them: transformed, with their averages, and their range. */

/**
 * Series of a frame in the plotted scale: u along x, v along y; `average` likewise, which the
 * kernel takes of every recorded value. Of what has no logarithm v is minus infinity, `unplaced`
 * counts it, and `lane` is all of it.
 * @param {Pick<DecodedLines, "series" | "x0">} frame
 * @param {{ log_x: boolean, log_y?: boolean | null }} wish
 * @returns {PreparedSeries[]}
 */
export function prepareLines(frame, { log_x: logX, log_y: chosen }) {
  /** @type {(points: Points, logY: boolean) => { u: Float64Array, v: Float64Array }} */
  const placed = ({ x, y }, logY) => ({
    u: Float64Array.from(x, (one) => (logX ? Math.log1p(one + frame.x0) : one + frame.x0)),
    v: Float64Array.from(y, logY ? logarithm : (one) => one),
  });
  return frame.series.map((series) => {
    const logY = chosen ?? series.log_y;
    const unplaced = logY ? series.y.reduce((sum, y) => sum + Number(y <= 0), 0) : 0;
    const drawn = placed(series, logY);
    const lane = unplaced ? { u: drawn.u, v: drawn.v.map(inLane) } : null;
    return { ...series, ...drawn, log_y: logY, average: placed(series.average, logY), unplaced, lane };
  });
}

/** @param {number} y */
function logarithm(y) {
  return y <= 0 ? -Infinity : Math.log10(y);
}

/** @param {number} v */
function inLane(v) {
  return v === -Infinity ? v : NaN;
}

/**
 * `{ low, high, lane }` of the values whose x lies in [from, to] (transformed), `lane` where some have
 * no logarithm; null when there is no value.
 * @param {PaintedSeries[]} prepared
 * @param {number} from
 * @param {number} to
 * @param {boolean} log
 */
export function valueRange(prepared, from, to, log) {
  let [low, high, lane] = [Infinity, -Infinity, false];
  for (const { u, v } of prepared.flatMap((series) => [series, series.average])) {
    for (let k = 0; k < v.length; k++) {
      if (Number.isNaN(v[k]) || v[k] === Infinity || u[k] < from || u[k] > to) continue;
      if (v[k] === -Infinity) {
        lane = true;
        continue;
      }
      if (v[k] < low) low = v[k];
      if (v[k] > high) high = v[k];
    }
  }
  if (low > high) return lane ? { low: 0.1, high: 1, lane } : null;
  return log ? { low: 10 ** low, high: 10 ** high, lane } : { low, high, lane };
}
