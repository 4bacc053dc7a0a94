/** The options of one chart: its series, value axis, smoothing and height, its place, and its removal. */

import { element, isGreyed, setGreyed, setHidden, setText } from "../dom.js";
import { createChoice, patchOf } from "../options/choice.js";
import { createLimits } from "../options/limits.js";
import { OUTLIERS, VALUES } from "../options/scale_choices.js";
import { createSmoothing } from "../options/smoothing.js";
import { arrangedCharts, changed, LEAST_PX, moved, settingsOf } from "./arranged.js";
import { createChartSeries } from "./chart_series.js";

const HEIGHT_PX = 40; // by which a button changes the height

/** @param {PanelParts} parts */
export function createChartOptions({ state, selection, dialogs, signal }) {
  let at = 0; // the chart whose options are open
  /** @type {HTMLElement | null} */
  let opener = null;
  const settings = () => settingsOf(state.selection, at);
  /** @param {Partial<ChartMessage>} patch */
  const change = (patch) => selection.arrange(changed(arrangedCharts(state), at, patch));
  /** @type {ChoiceOf<ChartMessage>} */
  const choice = (label, role, options, field) =>
    createChoice({ label, role, options, choose: (value) => change(patchOf(field, value)), signal });
  const series = createChartSeries({ state, selection, chart: () => at, signal });
  const values = choice("Values", "chart-log-y", VALUES, "log_y");
  const outliers = choice("Outliers", "chart-outliers", OUTLIERS, "outliers");
  const limits = createLimits({ limits: () => settings().y_limits, change, about: () => "", signal });
  const smoothing = createSmoothing({
    weight: () => settings().smooth,
    drawn: () => (state.charts[at]?.prepared ?? []).map((one) => one.weight),
    change,
    signal,
  });
  const height = element("span", { class: "nbp-weight" });
  const lower = button("−", "lower-chart", "Lower", () => stretch(-HEIGHT_PX));
  const taller = button("+", "taller-chart", "Taller", () => stretch(HEIGHT_PX));
  const up = button("Move up", "chart-up", "", () => move(-1));
  const down = button("Move down", "chart-down", "", () => move(1));
  const gone = button("Remove chart", "remove-chart", "", () => {
    remove(at);
    dialogs.close();
  });
  const heightLine = element(
    "div",
    { class: "nbp-choice-line" },
    element("span", { class: "nbp-choice-label" }, "Height"),
    element("span", { class: "nbp-smooth" }, lower, height, taller),
  );
  const content = element(
    "div",
    { class: "nbp-view-options nbp-chart-options" },
    series.el,
    ...[values.el, limits.el, outliers.el, smoothing.el, heightLine],
    element("div", { class: "nbp-buttons" }, up, down, gone),
  );
  for (const topic of ["selection", "lines", "status"]) state.on(topic, show);

  /** @param {number} by */
  function stretch(by) {
    const { box } = state.charts[at];
    change({ height: Math.max(LEAST_PX, Math.round(box.bottom - box.top) + by) });
  }

  /** @param {number} by */
  function move(by) {
    selection.arrange(moved(arrangedCharts(state), at, at + by));
    at += by;
    show();
  }

  /**
   * A chart and the lines in it; the others stay.
   * @param {number} place
   */
  function remove(place) {
    selection.arrange(arrangedCharts(state).filter((_, one) => one !== place));
  }

  function show() {
    if (!opener?.isConnected || opener.getAttribute("aria-expanded") !== "true") return;
    const { log_y: log, outliers: all, y_limits: ends, height: px } = settings();
    const drawn = state.charts[at];
    values.show(log, log === null && drawn ? `Now ${drawn.log ? "logarithmic" : "linear"}.` : "");
    outliers.show(all);
    setHidden(outliers.el, ends !== null);
    limits.show();
    smoothing.show();
    series.show();
    setText(height, `${px || Math.round(drawn ? drawn.box.bottom - drawn.box.top : 0)} px`);
    setGreyed(up, at === 0 ? "It is the upper chart" : "");
    setGreyed(down, at >= state.charts.length - 1 ? "It is the lowest chart" : "");
    setGreyed(gone, state.charts.length < 2 && !state.selection.charts.length ? "It is the only chart" : "");
  }

  return {
    /**
     * @param {number} place
     * @param {HTMLElement} anchor
     */
    open(place, anchor) {
      at = place;
      opener = anchor;
      dialogs.open({ anchor, label: "Options of the chart", content });
      show();
    },
    remove,
  };

  /**
   * @param {string} text
   * @param {string} action
   * @param {string} label
   * @param {() => void} act
   */
  function button(text, action, label, act) {
    const node = element("button", { type: "button", "data-action": action }, text);
    if (label) Object.assign(node, { title: label, ariaLabel: label });
    node.addEventListener("click", () => !isGreyed(node) && act(), { signal });
    return node;
  }
}
