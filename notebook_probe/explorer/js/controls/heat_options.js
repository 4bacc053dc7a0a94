/** Above the heat map: the quantity that it shows, and its color scale. */

import { element, listener, setAttribute, setHidden } from "../dom.js";
import { modulesText } from "../format.js";
import { homeFrame, measured, showsVectors } from "../state.js";
import { createChoice, patchOf } from "../options/choice.js";
import { createUndoButtons } from "../options/undo_buttons.js";
import { createSavedViews } from "../options/saved_views.js";
import { ratioOptions } from "../parts/compare/comparing.js";
import { ratioName } from "../parts/compare/names.js";
import { createSegment } from "../parts/compare/segment.js";
import { createHeatRows } from "./heat_rows.js";
import { createPopover } from "./popover.js";
import { createViewWord } from "../options/view_word.js";

const MOST_CHIPS = 5;

/** @type {Array<[boolean | null, string, string]>} */
const COLOURS = [
  [null, "automatic", "Linear for shares and values of both signs, else logarithmic."],
  [true, "log", "Equal steps of color are equal factors."],
  [false, "linear", "Equal steps of color are equal differences."],
];
/** @type {Array<[PanelSelection["cells"], string, string]>} */
const CELLS = [
  ["max", "largest", "A cell of several steps shows their largest value: a spike of one step stays."],
  ["mean", "mean", "A cell of several steps shows their mean: the level, without its spikes."],
];

/** @type {Array<[boolean, string, string]>} */
const BINS = [
  [false, "share", "Share of the elements of the step."],
  [true, "counts", "Number of elements in each bin."],
];
/** @type {Array<[boolean, string, string]>} */
const SCALES = [
  [false, "same", "One color scale for all modules."],
  [true, "per module", "Each module's colors span its smallest to its largest value."],
];

/** @param {PanelParts & { graph: { word: HTMLElement } }} parts */
export function createHeatOptions(parts) {
  const { state, selection, dialogs, graph, signal } = parts;
  const chips = element("span", {
    class: "nbp-quantities",
    role: "group",
    "aria-label": "Quantity of the heat map",
  });
  const moreButton = element(
    "button",
    { class: "nbp-chip", type: "button", "data-action": "more" },
    "more ▾",
  );
  const more = createPopover({
    button: moreButton,
    search: "Find a quantity",
    items: allQuantities,
    signal,
  });
  /** @type {ChoiceOf<PanelSelection>} */
  const choice = (label, role, options, field) =>
    createChoice({ label, role, options, choose: (value) => selection.change(patchOf(field, value)), signal });
  const log = choice("Color scale", "log-heat", COLOURS, "log_heat");
  const cells = choice("Cells", "cells", CELLS, "cells");
  /** @type {ChoiceOf<PanelState["vectorOptions"]>} */
  const ofVectors = (label, role, options, field) =>
    createChoice({ label, role, options, choose: (value) => changeVectors(patchOf(field, value)), signal });
  const counts = ofVectors("Bins", "counts", BINS, "counts");
  const own = ofVectors("Scale", "own-scale", SCALES, "own");
  const shows = createSegment({
    label: "Shows",
    role: "heat-ratio-to",
    choose: (value) => selection.change({ ratio_to: value }),
    signal,
  });
  const showing = element(
    "div",
    { class: "nbp-choice-line" },
    element("span", { class: "nbp-choice-label" }, "Shows"),
    shows.el,
  );
  const word = createViewWord({
    dialogs,
    label: "Options of the heat map",
    role: "heat-options",
    lines: [{ el: showing }, log, cells, counts, own],
    signal,
  });
  const reset = element(
    "button",
    { class: "nbp-option", type: "button", "data-role": "reset", hidden: "" },
    "✕ zoom",
  );
  reset.title = "Show all steps again";
  const undo = createUndoButtons(parts).el;
  const words = [undo, createSavedViews(parts).el, createHeatRows(parts).el, graph.word, word.el];
  const options = element("span", { class: "nbp-options" }, reset, ...words);
  const el = element("div", { class: "nbp-head" }, chips, more.el, options);
  const listen = listener(signal);
  listen(chips, "click", (event) => {
    const chip = event.target.closest("[data-quantity]");
    if (chip) selection.change({ home: chip.dataset.quantity });
  });
  listen(reset, "click", () => selection.change({ window: null }));
  const topics = ["selection", "status", "model", "heat", "vectors", "vector options", "compare"];
  for (const topic of topics) state.on(topic, refresh);

  const drawnVectors = () =>
    Object.entries(state.status.vectors).flatMap(([name, glyph]) => (glyph ? [name] : []));
  const recorded = () => [...new Set([...measured(state.status), ...drawnVectors()])];

  /** @param {Partial<PanelState["vectorOptions"]>} patch */
  function changeVectors(patch) {
    state.vectorOptions = { ...state.vectorOptions, ...patch };
    state.emit("vector options");
  }

  /** @param {string} query */
  function allQuantities(query) {
    return Object.keys(state.status.recorded)
      .filter((name) => name.toLowerCase().includes(query))
      .map((name) => ({
        text: name,
        note: noteOf(name),
        on: name === state.selection.home,
        data: { quantity: name },
        act: () => selection.change({ home: name }),
      }));
  }

  /** @param {string} name */
  function noteOf(name) {
    const modules = state.status.recorded[name];
    return modules ? modulesText(modules.length) : "vectors";
  }

  function refresh() {
    const names = recorded();
    setHidden(reset, state.selection.window === null);
    const { home, log_heat: chosen, cells: shown } = state.selection;
    const first = names.slice(0, MOST_CHIPS);
    if (home && !first.includes(home)) first.splice(MOST_CHIPS - 1, 1, home);
    const wanted = JSON.stringify(first);
    if (chips.dataset.names !== wanted) {
      chips.dataset.names = wanted;
      delete chips.dataset.home;
      chips.replaceChildren(...first.map((name) => quantityChip(name, state)));
    }
    for (const chip of chips.children) {
      setAttribute(chip, "aria-pressed", chip.getAttribute("data-quantity") === home);
    }
    keepInSight(home);
    setHidden(more.el, names.length < 4);
    setHidden(word.el, !names.length);
    const isLog = chosen ?? homeFrame(state)?.log ?? true;
    const vectors = showsVectors(state);
    const { counts: counted, own: ownScale } = state.vectorOptions;
    const bins = Boolean(vectors && state.vectors?.low_edges.length);
    setHidden(cells.el, vectors || Boolean(state.selection.ratio_to));
    setHidden(counts.el, !bins);
    setHidden(own.el, !vectors);
    counts.show(counted);
    own.show(ownScale);
    log.show(chosen, chosen === null ? `Now ${isLog ? "logarithmic" : "linear"}.` : "");
    cells.show(shown);
    const unit = bins && !isLog ? (counted ? "counts" : "share") : isLog ? "log" : "linear";
    const { others, ratio_to: to } = state.selection;
    setHidden(showing, !others.length || vectors);
    shows.show(ratioOptions(state), to);
    setHidden(log.el, Boolean(to) && !vectors);
    if (to && !vectors) return word.show([`ratio to ${ratioName(state)}`]);
    return word.show([unit, !vectors && shown === "mean" && "mean", vectors && ownScale && "per-module scales"]);
  }

  /** Words beside the chips take their room: the options of a ratio are long. */
  const observer = new ResizeObserver(() => {
    delete chips.dataset.home;
    keepInSight(state.selection.home);
  });
  observer.observe(chips);
  signal.addEventListener("abort", () => observer.disconnect());

  /**
   * What does not fit wraps out of sight: the quantity that is shown comes first then.
   * @param {string} home
   */
  function keepInSight(home) {
    if (chips.dataset.home === home) return;
    chips.dataset.home = home;
    const all = /** @type {HTMLElement[]} */ ([...chips.children]);
    for (const chip of all) chip.style.order = "";
    const shown = all.find((chip) => chip.getAttribute("data-quantity") === home);
    if (shown && shown.offsetTop > all[0].offsetTop) shown.style.order = "-1";
  }

  refresh();
  return { el };
}

/**
 * @param {string} name
 * @param {PanelState} state
 */
function quantityChip(name, state) {
  const summary = state.model.quantities.find((one) => one.name === name)?.summary ?? "";
  return element(
    "button",
    { class: "nbp-chip", type: "button", "data-quantity": name, title: summary },
    ...glyphOf(state.status.vectors[name]),
    name,
  );
}

/** @param {string | undefined} glyph */
function glyphOf(glyph) {
  return glyph ? [element("i", { class: "nbp-glyph", "data-glyph": glyph, "aria-hidden": "true" })] : [];
}
