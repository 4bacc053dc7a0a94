/** The code that draws this view from the record: the kernel's templates, filled here. */

import { inItsChart, settingsOf } from "../../charts/arranged.js";

/**
 * @typedef {{
 *   templates: SavedMessage["templates"],
 *   axes: SavedMessage["code_axes"],
 *   location: string,
 *   selection: PanelSelection,
 *   log: { heat: boolean },
 *   lines: DecodedLines | null,
 * }} CodeParts
 */

/**
 * Text of Python; `log` says how what is drawn is scaled where nobody chose.
 * @param {CodeParts} parts
 */
export function codeOf({ templates, axes, location, selection, log, lines: drawn }) {
  const { home, log_x: logX } = selection;
  const name = drawn?.x_axis ?? "step"; // a run may not have the chosen one
  const axis = axes[name];
  const series = selection.series.filter(([, quantity]) => !quantity.includes("[")); // an element is no quantity
  const window = windowOf(selection);
  const logHeat = selection.log_heat ?? log.heat;
  const heat = {
    home,
    name: home,
    window,
    norm: logHeat ? "log" : "linear",
    drawn: logHeat ? `.where(${home} > 0)` : "",
  };
  const charts = chartsOf(series, selection, drawn);
  const chosen = selection.chosen_colors.filter(([m, q]) => series.some(([one, other]) => one === m && other === q));
  const lines = {
    n: charts.length,
    height: 1 + 2.5 * charts.length,
    series: charts.map((one) => one.series),
    yscales: charts.map((one) => (one.log ? "log" : "linear")),
    limits: charts.map(({ limits }, number) => limitsOf(templates, number, limits)).join(""),
    smooth: charts.map((one) => one.smooth),
    window,
    setup: axis.setup,
    colors: chosen.length ? filled(templates.colors, { chosen }) : "",
    colored: chosen.length ? templates.colored : "",
    faint: chosen.length ? templates.faint : "",
    x: axis.x,
    xscale: logX ? axis.log : "linear",
    xlabel: name,
  };
  return [
    filled(templates.head, { location }),
    home ? filled(templates.heat, heat) : "",
    series.length ? filled(charts.some((one) => one.smooth) ? templates.smoothed : templates.lines, lines) : "",
  ].join("");
}

/**
 * @param {SavedMessage["templates"]} templates
 * @param {number} number
 * @param {PanelSelection["y_limits"]} limits
 */
function limitsOf(templates, number, limits) {
  return limits ? filled(templates.limits, { number, low: limits[0], high: limits[1] }) : "";
}

/**
 * Series that share a value axis, as they are drawn.
 * @param {Array<[string, string]>} series
 * @param {PanelSelection} selection
 * @param {DecodedLines | null} drawn
 */
function chartsOf(series, selection, drawn) {
  const shown = series.map((pair) => {
    const [module, quantity] = pair;
    const one = drawn?.series.find((line) => line.module === module && line.quantity === quantity);
    const known = { module, quantity, chart: one?.chart ?? 0, log_y: one?.log_y ?? true };
    const { chart, log_y: log } = inItsChart(selection, known);
    return { pair, chart, log };
  });
  const numbers = [...new Set(shown.map(({ chart }) => chart))].sort((one, other) => one - other);
  return numbers.map((number) => {
    const ofChart = shown.filter(({ chart }) => chart === number);
    const { y_limits: limits, smooth } = settingsOf(selection, number);
    return { series: ofChart.map(({ pair }) => pair), log: ofChart[0].log, limits, smooth };
  });
}

/**
 * Python's `str.format` as far as the templates use it; what JSON writes, Python reads.
 * @param {string} template
 * @param {Record<string, unknown>} values
 */
function filled(template, values) {
  return template.replace(/\{\{|\}\}|\{(\w+)(!r)?\}/g, (found, name, literal) => {
    if (!name) return found[0];
    return literal ? JSON.stringify(values[name]) : String(values[name]);
  });
}

/** @param {Pick<PanelSelection, "window">} selection */
function windowOf({ window }) {
  return window ? `.sel(step=slice(${Math.ceil(window[0])}, ${Math.floor(window[1])}))` : "";
}
