/** A chip per series that is drawn, on one line; those without a place stand behind "+12". */

import { element, listener, setHidden, setText } from "../dom.js";
import { seriesName, shortName } from "../names.js";
import { rgbOf, seriesColour, seriesStroke } from "../plots/colour.js";
import { fitChips } from "./fitted_chips.js";
import { bringOut, emphasize } from "../charts/emphasis.js";
import { createPopover } from "../controls/popover.js";
import { createSeriesColors } from "./series_colors.js";

/** @typedef {{ module: string, quantity: string, name: string }} NamedSeries */

/** @param {Pick<PanelParts, "state" | "selection" | "theme" | "dialogs" | "signal">} parts */
export function createSeriesChips({ state, selection, theme, dialogs, signal }) {
  const colors = createSeriesColors({ state, selection, theme, dialogs, signal });
  const chips = element("span", { class: "nbp-chips", role: "group", "aria-label": "Series drawn" });
  const restButton = element("button", {
    class: "nbp-chip",
    type: "button",
    "data-action": "rest",
    title: "More drawn series",
  });
  const rest = createPopover({ button: restButton, search: "", items: hiddenSeries, signal });
  rest.el.hidden = true;
  let drawn = "";

  chips.addEventListener("click", pressed, { signal });
  const listen = listener(signal);
  listen(chips, "pointerover", pointed);
  listen(chips, "focusin", pointed);
  listen(chips, "pointerleave", left);
  listen(chips, "focusout", left);
  for (const topic of ["lines", "theme"]) state.on(topic, colour);
  state.on("emphasis", dim);

  /** @param {UIEvent} event */
  function pointed(event) {
    const { module, quantity } = event.target.closest(".nbp-chip")?.dataset ?? {};
    if (module !== undefined && quantity !== undefined) emphasize(state, { module, quantity });
  }

  function left() {
    emphasize(state, null);
  }

  function dim() {
    for (const chip of chips.children) {
      const { module = "", quantity = "" } = chip.dataset;
      bringOut(chip, state, { module, quantity });
    }
  }

  /** @param {MouseEvent} event */
  function pressed(event) {
    const button = /** @type {HTMLElement | null} */ (event.target.closest(".nbp-remove, .nbp-swatch-button"));
    const { module, quantity } = button?.parentElement?.dataset ?? {};
    if (!button || module === undefined || quantity === undefined) return;
    if (button.matches(".nbp-remove")) selection.remove(module, quantity);
    else colors.open(button, { module, quantity });
  }

  function named() {
    return state.selection.series.map(([module, quantity]) => ({
      module,
      quantity,
      name: seriesName(module, quantity),
    }));
  }

  function hiddenSeries() {
    return named()
      .slice(chips.children.length)
      .map(({ module, quantity, name }) => ({
        text: name,
        stroke: strokeOf({ module, quantity }),
        note: "remove",
        data: { module, quantity },
        act: () => selection.remove(module, quantity),
      }));
  }

  /**
   * In so many pixels.
   * @param {number} room
   */
  function fill(room) {
    const all = named();
    const { letters } = fitChips(
      all.map(({ name }) => name.length),
      room,
    );
    const key = JSON.stringify([all, letters]);
    if (key === drawn) return;
    drawn = key;
    chips.replaceChildren(...letters.map((most, k) => seriesChip(all[k], most)));
    const hidden = all.length - letters.length;
    setText(restButton, `+${hidden}`);
    setHidden(rest.el, !hidden);
    colour();
    dim();
  }

  function colour() {
    const ground = rgbOf(theme.read().ground);
    for (const chip of chips.children) {
      const index = colorOf(chip.dataset);
      chip.style.setProperty("--nbp-series", index === undefined ? "" : seriesColour(index, ground));
      chip.style.setProperty("--nbp-stroke", index === undefined ? "" : seriesStroke(index, ground));
    }
  }

  /**
   * The frame has the color of each series.
   * @param {{ module?: string, quantity?: string }} series
   */
  function colorOf({ module, quantity }) {
    return state.lines?.series.find((one) => one.module === module && one.quantity === quantity)?.colour;
  }

  /** @param {{ module: string, quantity: string }} series */
  function strokeOf(series) {
    const index = colorOf(series);
    return index === undefined ? "" : seriesStroke(index, rgbOf(theme.read().ground));
  }

  return { el: chips, rest: rest.el, fill };
}

/**
 * @param {NamedSeries} series
 * @param {number} letters
 */
function seriesChip({ module, quantity, name }, letters) {
  const stroke = element("i", { class: "nbp-stroke nbp-coloured", "aria-hidden": "true" });
  const color = `Color of ${name}`;
  const swatch = element(
    "button",
    { class: "nbp-swatch-button", type: "button", "aria-haspopup": "dialog", "aria-label": color, title: color },
    stroke,
  );
  const remove = element(
    "button",
    { class: "nbp-remove", type: "button", "aria-label": `Remove ${name}` },
    "✕",
  );
  const short = shortName(name, (text) => text.length <= letters);
  const text = element("span", { class: "nbp-chip-text" }, short);
  const data = { "data-module": module, "data-quantity": quantity };
  return element("span", { class: "nbp-chip nbp-on", ...data, title: name }, swatch, text, remove);
}
