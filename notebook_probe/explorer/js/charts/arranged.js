/** Charts as a user arranges them: what each shows and how, and the changes of them, as new lists. */

export const LEAST_PX = 80; // height of a chart
export const MOST_PX = 1200;
const FRESH_PX = 200;

/**
 * The settings of a chart by its number; charts after the arranged ones share those of the panel.
 * @param {PanelSelection} selection
 * @param {number} number
 * @returns {ChartMessage}
 */
export function settingsOf(selection, number) {
  const { log_y, y_limits: limits, outliers, smooth } = selection;
  const shared = { series: [], log_y, y_limits: number ? null : limits, outliers, smooth, height: 0 };
  return selection.charts[number] ?? shared;
}

/**
 * A drawn series with its chart, and with the scale of that chart where one was chosen.
 * @template {{ module: string, quantity: string, chart: number, log_y: boolean }} Of
 * @param {PanelSelection} selection
 * @param {Of} series
 * @returns {Of}
 */
export function inItsChart(selection, series) {
  const pair = [series.module, series.quantity];
  const at = selection.charts.findIndex((chart) => isIn(chart, pair));
  const chart = at < 0 ? series.chart : at;
  return { ...series, chart, log_y: settingsOf(selection, chart).log_y ?? series.log_y };
}

/**
 * Drawn series in their charts, of which each has one scale: that of its first series, until the
 * kernel answers to a series that was moved here.
 * @template {{ module: string, quantity: string, chart: number, log_y: boolean }} Of
 * @param {PanelSelection} selection
 * @param {Of[]} series
 * @returns {Of[]}
 */
export function inTheirCharts(selection, series) {
  const placed = series.map((one) => inItsChart(selection, one));
  /** @type {Map<number, boolean>} */
  const logs = new Map();
  for (const { chart, log_y: log } of placed) if (!logs.has(chart)) logs.set(chart, log);
  return placed.map((one) => ({ ...one, log_y: logs.get(one.chart) ?? one.log_y }));
}

/**
 * The charts that are drawn now, as if they had been arranged so: what is drawn stays where it is.
 * @param {Pick<PanelState, "charts" | "selection">} state
 * @returns {ChartMessage[]}
 */
export function arrangedCharts({ charts, selection }) {
  const found = charts.map(({ number, prepared, box }) => {
    const own = prepared.filter((one) => !one.left).map((one) => pairOf(one.module, one.quantity));
    const settings = settingsOf(selection, number);
    const height = settings.height || box.bottom - box.top;
    return { ...settings, series: [...settings.series, ...own.filter((pair) => !isIn(settings, pair))], height };
  });
  const listed = found.flatMap(({ series }) => series);
  const others = selection.series.filter((pair) => !listed.some((one) => isSame(one, pair)));
  if (!found.length) return [{ ...settingsOf(selection, 0), series: others, height: FRESH_PX }];
  return found.map((chart, at) => (at || !others.length ? chart : { ...chart, series: [...chart.series, ...others] }));
}

/**
 * One more chart below, without a series.
 * @param {ChartMessage[]} charts
 * @returns {ChartMessage[]}
 */
export function withNew(charts) {
  const last = charts[charts.length - 1];
  const { smooth = 0, height = FRESH_PX } = last ?? {};
  return [...charts, { series: [], log_y: null, y_limits: null, outliers: false, smooth, height }];
}

/**
 * A chart at another place; one beyond an end goes to that end.
 * @param {ChartMessage[]} charts
 * @param {number} from
 * @param {number} to
 */
export function moved(charts, from, to) {
  const rest = charts.filter((_, at) => at !== from);
  const place = Math.min(Math.max(to, 0), rest.length);
  return [...rest.slice(0, place), charts[from], ...rest.slice(place)];
}

/**
 * @param {ChartMessage[]} charts
 * @param {number} at
 * @param {Partial<ChartMessage>} patch
 */
export function changed(charts, at, patch) {
  return charts.map((chart, place) => (place === at ? { ...chart, ...patch } : chart));
}

/**
 * A series in this chart, and in no other.
 * @param {ChartMessage[]} charts
 * @param {number} at
 * @param {[string, string]} pair
 */
export function holding(charts, at, pair) {
  return charts.map((chart, place) => {
    const others = chart.series.filter((one) => !isSame(one, pair));
    return { ...chart, series: place === at ? [...others, pair] : others };
  });
}

/**
 * @param {ChartMessage} chart
 * @param {string[]} pair
 */
function isIn({ series }, pair) {
  return series.some((one) => isSame(one, pair));
}

/**
 * @param {string[]} one
 * @param {string[]} other
 */
function isSame(one, other) {
  return one[0] === other[0] && one[1] === other[1];
}

/**
 * @param {string} module
 * @param {string} quantity
 * @returns {[string, string]}
 */
function pairOf(module, quantity) {
  return [module, quantity];
}
