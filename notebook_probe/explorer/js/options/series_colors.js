/** Color of a series: the palette with its dash patterns, in a dialog at the swatch of a chip. */

import { element, listener, setAttribute } from "../dom.js";
import { seriesName } from "../names.js";
import { N_COLOURS, STYLE_NAMES, rgbOf, seriesStroke } from "../plots/colour.js";

/** @typedef {{ module: string, quantity: string }} OneSeries */

/** @type {Record<string, number>} */
const MOVES = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: N_COLOURS, ArrowUp: -N_COLOURS };

/**
 * The color that a user chose for a series; undefined for an automatic one.
 * @param {Pick<PanelSelection, "chosen_colors">} selection
 * @param {OneSeries} series
 */
export function chosenColor({ chosen_colors: chosen }, { module, quantity }) {
  return chosen.find(([one, other]) => one === module && other === quantity)?.[2];
}

/**
 * `open(anchor, series)` offers the colors of a series.
 * @param {Pick<PanelParts, "state" | "selection" | "theme" | "dialogs" | "signal">} parts
 */
export function createSeriesColors({ state, selection, theme, dialogs, signal }) {
  /** @type {OneSeries} */
  let series = { module: "", quantity: "" };
  const colors = STYLE_NAMES.map((name, index) => colorButton(name, index));
  const grid = element("div", { class: "nbp-palette", role: "radiogroup", "aria-label": "Color" }, ...colors);
  const automatic = element("button", { type: "button", "data-action": "automatic-color" }, "Automatic color");
  const content = element("div", {}, grid, automatic);
  const listen = listener(signal);
  listen(grid, "click", ({ target }) => {
    const index = target.closest(".nbp-color")?.dataset.color;
    if (index !== undefined) choose(Number(index));
  });
  listen(grid, "keydown", moved);
  listen(automatic, "click", () => choose(null));
  for (const topic of ["lines", "selection", "theme"]) state.on(topic, show);

  /** @param {number | null} index */
  function choose(index) {
    const { module, quantity } = series;
    const others = state.selection.chosen_colors.filter(([one, other]) => one !== module || other !== quantity);
    /** @type {PanelSelection["chosen_colors"]} */
    const own = index === null ? [] : [[module, quantity, index]];
    selection.change({ chosen_colors: [...others, ...own] });
  }

  /** @param {KeyboardEvent} event */
  function moved(event) {
    const by = MOVES[event.key];
    if (!by) return;
    const from = colors.findIndex((button) => button.matches(":focus"));
    colors[(from + by + colors.length) % colors.length].focus();
    event.preventDefault();
    event.stopPropagation();
  }

  function show() {
    if (!grid.isConnected) return;
    const ground = rgbOf(theme.read().ground);
    const chosen = chosenColor(state.selection, series);
    const drawn = state.lines?.series.find((one) => one.module === series.module && one.quantity === series.quantity);
    const now = chosen ?? drawn?.colour ?? 0;
    colors.forEach((button, index) => {
      setAttribute(button, "aria-checked", index === now);
      button.tabIndex = index === now ? 0 : -1;
      button.style.setProperty("--nbp-stroke", seriesStroke(index, ground));
    });
    setAttribute(automatic, "aria-pressed", chosen === undefined);
  }

  return {
    /**
     * @param {HTMLElement} anchor
     * @param {OneSeries} of
     */
    open(anchor, of) {
      series = of;
      dialogs.open({ anchor, label: `Color of ${seriesName(of.module, of.quantity)}`, content });
      show();
      colors.find((button) => button.tabIndex === 0)?.focus();
    },
  };
}

/**
 * @param {string} name
 * @param {number} index
 */
function colorButton(name, index) {
  return element(
    "button",
    { type: "button", class: "nbp-color", role: "radio", "data-color": index, "aria-label": name, title: name },
    element("i", { class: "nbp-stroke nbp-coloured", "aria-hidden": "true" }),
  );
}
