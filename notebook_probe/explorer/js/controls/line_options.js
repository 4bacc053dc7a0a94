/** Above the lines: a chip per series, the series picker behind "+", the options of the axes. */

import { element, setAttribute, setText } from "../dom.js";
import { weightAt } from "../format.js";
import { seriesName, shortName } from "../names.js";
import { rgbOf, seriesColour, seriesDash } from "../plots/colour.js";
import { hasSeries } from "../state.js";
import { createPopover } from "./popover.js";
import { toggleButton } from "./toggle.js";

const CHIP_LETTERS = 34;
const MOST_CHIPS = 24; // the picker behind "+" lists and removes the others

export function createLineOptions({ state, selection, theme, signal }) {
  const chips = element("span", {
    class: "nbp-chips",
    role: "group",
    "aria-label": "Series drawn",
  });
  const plus = element(
    "button",
    {
      class: "nbp-chip",
      type: "button",
      "data-action": "add",
      title: "Add a series",
      "aria-label": "Add a series",
    },
    "+",
  );
  const picker = createPopover({
    button: plus,
    search: "Find a module or quantity",
    items: recordedSeries,
    signal,
  });
  const logY = toggleButton("log y", "Logarithmic values", "log-y");
  const logX = toggleButton("log x", "Logarithmic steps or time", "log-x");
  const smooth = element("input", {
    type: "range",
    min: "0",
    max: "3",
    step: "0.1",
    "data-role": "smooth",
    "aria-label": "Smoothing",
  });
  const weight = element("span", { class: "nbp-weight" });
  const axis = element("button", {
    class: "nbp-option",
    type: "button",
    "data-role": "x-axis",
    title: "Steps or time along x",
  });
  const smoothing = element(
    "label",
    { class: "nbp-smooth", title: "Weight of the running average, which is taken of every recorded value" },
    "smooth ",
    smooth,
    weight,
  );
  const options = element("span", { class: "nbp-options" }, logY, logX, smoothing, axis);
  const el = element("div", { class: "nbp-head nbp-wrapping" }, chips, picker.el, options);
  const listen = (node, type, run) => node.addEventListener(type, run, { signal });
  listen(chips, "click", (event) => {
    const chip = event.target.closest(".nbp-remove")?.parentElement;
    if (chip)
      selection.remove(chip.getAttribute("data-module"), chip.getAttribute("data-quantity"));
  });
  listen(logY, "click", () => selection.change({ log_y: !state.selection.log_y }));
  listen(logX, "click", () => selection.change({ log_x: !state.selection.log_x }));
  listen(axis, "click", () =>
    selection.change({ x_axis: state.selection.x_axis === "step" ? "time" : "step" }),
  );
  listen(smooth, "input", () => selection.change({ smooth: weightAt(Number(smooth.value)) }));
  state.on("selection", refresh);
  for (const topic of ["lines", "theme"]) state.on(topic, colourChips);

  /** Every recorded pair that contains all words of the query. */
  function recordedSeries(query) {
    const words = query.split(/[\s·]+/).filter(Boolean);
    const found = [];
    for (const [quantity, modules] of Object.entries(state.status.recorded)) {
      for (const module of modules) {
        const text = seriesName(module, quantity);
        const lower = text.toLowerCase();
        if (words.every((word) => lower.includes(word)))
          found.push(seriesItem(module, quantity, text));
      }
    }
    return found;
  }

  function seriesItem(module, quantity, text) {
    const on = hasSeries(state.selection, module, quantity);
    const act = () => selection.add(module, quantity); // the ✕ of its chip takes it away
    return { text, note: on ? "drawn" : "", on, data: { module, quantity }, act };
  }

  function refresh() {
    const {
      series,
      log_y: log,
      log_x: logarithmic,
      smooth: share,
      x_axis: along,
    } = state.selection;
    const wanted = JSON.stringify(series);
    if (chips.dataset.series !== wanted) {
      chips.dataset.series = wanted;
      chips.replaceChildren(
        ...series.slice(0, MOST_CHIPS).map(([module, quantity]) => seriesChip(module, quantity)),
      );
      if (series.length > MOST_CHIPS) chips.append(`+ ${series.length - MOST_CHIPS} more`);
      colourChips();
    }
    setAttribute(logY, "aria-pressed", log);
    setAttribute(logX, "aria-pressed", logarithmic);
    if (weightAt(Number(smooth.value)) !== share) smooth.value = -Math.log10(1 - share);
    setAttribute(smooth, "aria-valuetext", share);
    setText(weight, share ? String(share).padEnd(4, "0") : "none");
    setText(axis, `x: ${along}`);
  }

  /** The frame says which colour is bound to which series. */
  function colourChips() {
    const ground = rgbOf(theme.read().ground);
    for (const chip of chips.children) {
      const [module, quantity] = [
        chip.getAttribute("data-module"),
        chip.getAttribute("data-quantity"),
      ];
      const drawn = state.lines?.series.find(
        (one) => one.module === module && one.quantity === quantity,
      );
      chip.style.setProperty("--nbp-series", drawn ? seriesColour(drawn.colour, ground) : "");
      chip.style.setProperty(
        "--nbp-dash",
        drawn && seriesDash(drawn.colour).length ? "dashed" : "",
      );
    }
  }

  refresh();
  return { el };
}

const fitsChip = (text) => text.length <= CHIP_LETTERS;

function seriesChip(module, quantity) {
  const name = seriesName(module, quantity);
  const remove = element(
    "button",
    { class: "nbp-remove", type: "button", "aria-label": `Remove ${name}` },
    "✕",
  );
  const text = element("span", { class: "nbp-chip-text" }, shortName(name, fitsChip));
  return element(
    "span",
    { class: "nbp-chip nbp-on", "data-module": module, "data-quantity": quantity, title: name },
    text,
    remove,
  );
}
