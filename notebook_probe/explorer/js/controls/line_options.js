/** Above the lines, on one line: a chip per series, what draws more, the options of the axes. */

import { element, setAttribute, setHidden, setText } from "../dom.js";
import { seriesName } from "../names.js";
import { arrangedCharts, withNew } from "../charts/arranged.js";
import { recordedSeries } from "../options/recorded_series.js";
import { hasSeries, isLogY } from "../state.js";
import { ALIGNMENTS } from "../parts/compare/alignments.js";
import { createChoice, patchOf } from "../options/choice.js";
import { createPopover } from "./popover.js";
import { createSeriesChips } from "../options/series_chips.js";
import { formulaItems } from "../options/formula_items.js";
import { createLimits, upperChart } from "../options/limits.js";
import { OUTLIERS, VALUES } from "../options/scale_choices.js";
import { createSmoothing } from "../options/smoothing.js";
import { createViewWord } from "../options/view_word.js";

const GAPS_PX = 30;

/** @type {Array<[PanelSelection["x_axis"], string, string]>} */
const STEPS = [
  ["step", "step", ""],
  ["time", "time", "Since the run began."],
  ["epoch", "epoch", "Epochs, even between their starts."],
];
/** @type {Array<[boolean, string, string]>} */
const SPACING = [
  [false, "linear", ""],
  [true, "log", "The first steps take more width."],
];

/** @param {PanelParts} parts */
export function createLineOptions(parts) {
  const { state, selection, dialogs, signal } = parts;
  const chips = createSeriesChips(parts);
  const plus = chipButton("add", "+", "Add a series");
  const picker = createPopover({
    button: plus,
    search: "Find a module or quantity",
    items: listedSeries,
    hint: state.parts.saved ? "" : "Type = for a formula, such as = 1 - accuracy.",
    signal,
  });
  const bulk = chipButton("draw-marked", "", "");
  const newChart = chipButton("new-chart", "+ chart", "Add a chart below");
  /** @type {ChoiceOf<PanelSelection>} */
  const choice = (label, role, options, field) =>
    createChoice({ label, role, options, choose: (value) => ofAll(patchOf(field, value)), signal });
  const values = choice("Values", "log-y", VALUES, "log_y");
  const along = choice("Along x", "x-axis", STEPS, "x_axis");
  const spacing = choice("Spacing", "log-x", SPACING, "log_x");
  const aligned = choice("Other runs by", "aligned-lines", ALIGNMENTS, "aligned");
  const outliers = choice("Outliers", "outliers", OUTLIERS, "outliers");
  const limits = createLimits({
    limits: () => state.selection.y_limits,
    change: selection.change,
    about: () => upperChart(state),
    signal,
  });
  const smoothing = createSmoothing({
    weight: () => state.selection.smooth,
    drawn: () => (state.lines?.smooth === state.selection.smooth ? state.lines.series.map((one) => one.weight) : []),
    change: ofAll,
    signal,
  });
  const word = createViewWord({
    dialogs,
    label: "Options of the lines",
    role: "line-options",
    lines: [values, limits, outliers, smoothing, along, spacing, aligned],
    signal,
  });
  const el = element("div", { class: "nbp-head" }, chips.el, chips.rest, picker.el, bulk, newChart, word.el);

  bulk.addEventListener("click", drawMarked, { signal });
  for (const topic of ["selection", "lines", "status", "model", "marked"]) state.on(topic, refresh);
  newChart.addEventListener("click", () => selection.arrange(withNew(arrangedCharts(state))), { signal });
  let room = 0; // of the chips, in pixels
  let beside = ""; // words that stand there, too, as they were measured
  const observer = new ResizeObserver(() => fit(null));
  observer.observe(el);
  signal.addEventListener("abort", () => observer.disconnect());

  /**
   * A choice for all charts: of those that were arranged, each has its own.
   * @param {Partial<PanelSelection>} patch
   */
  function ofAll(patch) {
    const { charts } = state.selection;
    const { log_y, outliers, smooth } = { ...state.selection, ...patch };
    /** @type {Partial<ChartMessage>} */
    const own = "log_y" in patch ? { log_y } : "outliers" in patch ? { outliers } : "smooth" in patch ? { smooth } : {};
    selection.change({ ...patch, charts: charts.map((chart) => ({ ...chart, ...own })) });
  }

  /**
   * @param {string} query
   * @param {string} typed
   * @returns {ListItem[]}
   */
  function listedSeries(query, typed) {
    if (typed.startsWith("=")) return formulaItems(state, typed, selection.add);
    return recordedSeries(state, query).map(([module, quantity]) => {
      return seriesItem(module, quantity, seriesName(module, quantity));
    });
  }

  /**
   * @param {string} module
   * @param {string} quantity
   * @param {string} text
   * @returns {ListItem}
   */
  function seriesItem(module, quantity, text) {
    const on = hasSeries(state.selection, module, quantity);
    const act = () => selection.add(module, quantity); // the ✕ of its chip takes it away
    return { text, note: on ? "drawn" : "", on, data: { module, quantity }, act };
  }

  /**
   * The home quantity of the marked modules, as far as it is not drawn.
   * @returns {Array<[string, string]>}
   */
  function undrawn() {
    const { home } = state.selection;
    const recorded = state.status.recorded[home] ?? [];
    return recorded
      .filter((module) => state.marked.has(module) && !hasSeries(state.selection, module, home))
      .map((module) => [module, home]);
  }

  function drawMarked() {
    selection.change({ series: [...state.selection.series, ...undrawn()] });
  }

  function refresh() {
    const { log_y: log, log_x: wide, smooth, x_axis: axis } = state.selection;
    const isLog = isLogY(state);
    values.show(log, log === null ? `Now ${isLog ? "logarithmic" : "linear"}.` : "");
    limits.show();
    outliers.show(state.selection.outliers);
    const isArranged = state.selection.charts.length > 0;
    setHidden(limits.el, isArranged); // each chart has its own
    setHidden(outliers.el, state.selection.y_limits !== null && !isArranged);
    const refused = state.lines?.refused ?? {};
    const whyNot = Object.values(refused).map((why) => `${why[0].toUpperCase()}${why.slice(1)}.`);
    along.show(axis, whyNot.join(" "), refused);
    spacing.show(wide);
    smoothing.show();
    const { others, aligned: by } = state.selection;
    setHidden(aligned.el, !others.length);
    aligned.show(by);
    word.show([
      isLog && "log y",
      state.selection.y_limits !== null && "limits",
      wide && "log x",
      smooth > 0 && `smooth ${smooth}`,
      axis !== "step" && axis,
      others.length > 0 && `by ${by}`,
    ]);
    const marked = undrawn();
    setHidden(bulk, marked.length < 2);
    setText(bulk, `+ ${marked.length} marked`);
    setAttribute(bulk, "title", `Draw ${state.selection.home} of the ${marked.length} marked modules`);
    fit(`${marked.length} ${word.el.textContent}`);
  }

  /**
   * Measuring lays the page out, which is too dear for each status.
   * @param {string | null} words
   */
  function fit(words) {
    if (words !== beside) {
      beside = words ?? "";
      const others = [picker.el, bulk, newChart, word.el].filter((node) => !node.hidden);
      const taken = others.reduce((sum, node) => sum + node.offsetWidth, GAPS_PX);
      room = Math.max(0, el.clientWidth - taken);
    }
    chips.fill(room);
  }

  refresh();
  return { el };
}

/**
 * @param {string} action
 * @param {string} text
 * @param {string} title
 */
function chipButton(action, text, title) {
  const attributes = { class: "nbp-chip", type: "button", "data-action": action };
  if (title) Object.assign(attributes, { title, "aria-label": title });
  return element("button", attributes, text);
}
