/** Exact values under the pointer, one row per series, the nearest one first in weight. */

import { element } from "../../dom.js";
import { exact, grouped } from "../../format.js";
import { unitsOf } from "../../state.js";
import { rgbOf, seriesColour } from "../colour.js";
import { seriesName } from "../../names.js";
import { axisKind } from "../step_axis.js";

/** @typedef {{ series: PaintedSeries, k: number, x: number, y: number, box: Box }} NearPoint */

const MOST_ROWS = 9; // series in a tip
const EVENT_PX = 4;

/**
 * `{ rows, closest }` at a pixel of the painted lines; null where no series has a value.
 * @param {PanelState} state
 * @param {Theme} theme
 * @param {PaintedLines} painted
 * @param {number} x
 * @param {number} y
 */
export function lineTooltip(state, theme, painted, x, y) {
  const { axis, charts, mapping } = painted;
  const points = charts.flatMap(({ prepared, beside, values, box }) =>
    [...prepared, ...beside].flatMap((series) => nearest(series, axis, { values, box }, x) ?? []),
  );
  const { lines } = state;
  if (!lines || !points.length) return null;
  const closest = points.reduce((a, b) => (Math.abs(b.y - y) < Math.abs(a.y - y) ? b : a));
  points.sort((a, b) => a.y - b.y);
  /** @type {(point: NearPoint) => number} */
  const stepOf = ({ series, k }) => Math.round(mapping.step(series.x[k] + lines.x0));
  const ground = rgbOf(theme.read().ground);
  const rows = points.slice(0, MOST_ROWS).map((point) => {
    const elsewhere = stepOf(point) === stepOf(closest) ? "" : ` at ${grouped(stepOf(point))}`;
    return valueRow(point, point === closest, elsewhere, ground, state);
  });
  if (points.length > MOST_ROWS) rows.push(element("div", {}, `+ ${points.length - MOST_ROWS} more`));
  const at = [`step ${grouped(stepOf(closest))}`, axisKind(state).named(lines.x0 + closest.series.x[closest.k])];
  const head = element("div", { class: "nbp-tip-head" }, at.filter(Boolean).join(" · "));
  const notes = [...nearEvents(lines, axis, x), ...nearAlerts(state.alerts, axis, mapping, x)];
  return { closest, rows: [head, ...rows, ...notes] };
}

/**
 * @param {NearPoint} point
 * @param {boolean} on
 * @param {string} elsewhere
 * @param {number[]} ground
 * @param {PanelState} state
 */
function valueRow({ series, k }, on, elsewhere, ground, state) {
  const value = exact(series.y[k], unitsOf(state.model, series.quantity)) + elsewhere;
  const swatch = element("i", { style: `background: ${seriesColour(series.colour, ground)}` });
  const run = series.name ? `${series.name}: ` : "";
  const before = series.left ? ", before" : "";
  const name = element("span", {}, `${run}${seriesName(series.module, series.quantity)}${before}`);
  const kind = on ? "nbp-tip-row nbp-on" : "nbp-tip-row";
  return element("div", { class: kind }, swatch, name, element("b", {}, value));
}

/**
 * @param {DecodedLines} lines
 * @param {Axis} axis
 * @param {number} x
 */
function nearEvents({ events, x0 }, axis, x) {
  return events
    .filter(([at]) => Math.abs(axis.place(at + x0) - x) <= EVENT_PX)
    .map(([, kind, text]) => element("div", { class: "nbp-soft" }, text || kind));
}

/**
 * Which rule found what, and where.
 * @param {PanelAlert[]} alerts
 * @param {Axis} axis
 * @param {StepMapping} mapping
 * @param {number} x
 */
function nearAlerts(alerts, axis, mapping, x) {
  return alerts
    .filter(({ step }) => Math.abs(axis.place(mapping.x(step)) - x) <= EVENT_PX)
    .map(({ rule, text }) => element("div", { class: "nbp-bad" }, `▲ ${rule} at ${text}`));
}

/**
 * The recorded finite point of a series nearest to a pixel column.
 * @param {PaintedSeries} series
 * @param {Axis} axis
 * @param {Pick<LineChart, "values" | "box">} chart
 * @param {number} x
 */
function nearest(series, axis, { values, box }, x) {
  /** @type {NearPoint | null} */
  let best = null;
  for (let k = 0; k < series.n; k++) {
    const place = { series, k, x: series.u[k] * axis.factor + axis.offset, y: 0, box };
    if (best && Math.abs(place.x - x) >= Math.abs(best.x - x)) continue;
    place.y = values.at(series.v[k]);
    if (Number.isFinite(place.y)) best = place;
  }
  return best;
}
