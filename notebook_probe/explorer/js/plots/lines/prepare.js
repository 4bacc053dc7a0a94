/** Series as the axes place them: transformed, smoothed, and their range. */

import { smoothed } from "./smoothing.js";

/**
 * Series of a frame in the plotted scale: u along x, v along y, w smoothed v (or v itself), and
 * how many values a log axis cannot show.
 */
export function prepareLines(frame, { log_x: logX, log_y: logY, smooth }) {
  return frame.series.map((series) => {
    const [u, v] = [new Float64Array(series.n), new Float64Array(series.n)];
    let unplaced = 0;
    for (let k = 0; k < series.n; k++) {
      const x = series.x[k] + frame.x0;
      const y = series.y[k];
      u[k] = logX ? Math.log1p(x) : x;
      v[k] = logY ? Math.log10(y) : y;
      if (logY && y <= 0) unplaced += 1;
    }
    return { ...series, u, v, w: smooth > 0 ? smoothed(v, smooth) : v, unplaced };
  });
}

/** Lowest and highest drawable value whose x lies in [from, to] (transformed); null when none. */
export function valueRange(prepared, from, to, log) {
  let [low, high] = [Infinity, -Infinity];
  for (const { u, v } of prepared) {
    for (let k = 0; k < v.length; k++) {
      if (!Number.isFinite(v[k]) || u[k] < from || u[k] > to) continue;
      if (v[k] < low) low = v[k];
      if (v[k] > high) high = v[k];
    }
  }
  if (low > high) return null;
  return log ? { low: 10 ** low, high: 10 ** high } : { low, high };
}
