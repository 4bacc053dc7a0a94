/** Series as the axes place them: transformed, with their averages, and their range. */

/**
 * Series of a frame in the plotted scale: u along x, v along y; `average` likewise, which the
 * kernel takes of every recorded value; and how many values a log axis cannot show.
 */
export function prepareLines(frame, { log_x: logX, log_y: logY }) {
  const placed = ({ x, y }) => ({
    u: Float64Array.from(x, (one) => (logX ? Math.log1p(one + frame.x0) : one + frame.x0)),
    v: Float64Array.from(y, (one) => (logY ? Math.log10(one) : one)),
  });
  return frame.series.map((series) => {
    const unplaced = logY ? series.y.reduce((sum, y) => sum + (y <= 0), 0) : 0;
    return { ...series, ...placed(series), average: placed(series.average), unplaced };
  });
}

/** Lowest and highest drawable value whose x lies in [from, to] (transformed); null when none. */
export function valueRange(prepared, from, to, log) {
  let [low, high] = [Infinity, -Infinity];
  for (const { u, v } of prepared.flatMap((series) => [series, series.average])) {
    for (let k = 0; k < v.length; k++) {
      if (!Number.isFinite(v[k]) || u[k] < from || u[k] > to) continue;
      if (v[k] < low) low = v[k];
      if (v[k] > high) high = v[k];
    }
  }
  if (low > high) return null;
  return log ? { low: 10 ** low, high: 10 ** high } : { low, high };
}
