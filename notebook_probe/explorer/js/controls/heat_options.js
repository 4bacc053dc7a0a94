/** Above the heat map: which quantity it shows, how it is coloured. */

import { element, setAttribute, setHidden, setText } from "../dom.js";
import { modulesText } from "../format.js";
import { createPopover } from "./popover.js";
import { toggleButton } from "./toggle.js";

const MOST_CHIPS = 5;

export function createHeatOptions({ state, selection, signal }) {
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
  const log = toggleButton("log", "Logarithmic colour", "log-heat");
  const cells = element("button", { class: "nbp-option", type: "button", "data-role": "cells" });
  const reset = element(
    "button",
    { class: "nbp-option", type: "button", "data-role": "reset", hidden: "" },
    "✕ zoom",
  );
  reset.title = "Show all steps again";
  const options = element("span", { class: "nbp-options" }, reset, log, cells);
  const el = element("div", { class: "nbp-head" }, chips, more.el, options);
  const listen = (node, run) => node.addEventListener("click", run, { signal });
  listen(chips, (event) => {
    const chip = event.target.closest("[data-quantity]");
    if (chip) selection.change({ home: chip.getAttribute("data-quantity") });
  });
  listen(log, () => selection.change({ log_heat: !state.selection.log_heat }));
  listen(reset, () => selection.change({ window: null }));
  listen(cells, () =>
    selection.change({ cells: state.selection.cells === "max" ? "mean" : "max" }),
  );
  for (const topic of ["selection", "status", "model"]) state.on(topic, refresh);

  const recorded = () => Object.keys(state.status.recorded);

  function allQuantities(query) {
    return recorded()
      .filter((name) => name.toLowerCase().includes(query))
      .map((name) => ({
        text: name,
        note: modulesText(state.status.recorded[name].length),
        on: name === state.selection.home,
        data: { quantity: name },
        act: () => selection.change({ home: name }),
      }));
  }

  function refresh() {
    const names = recorded();
    const { home, log_heat: logarithmic, window } = state.selection;
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
    setHidden(options, !names.length);
    setAttribute(log, "aria-pressed", logarithmic);
    setText(cells, state.selection.cells === "max" ? "largest" : "mean");
    setAttribute(
      cells,
      "title",
      "What a cell of several steps shows: their largest value, or their mean",
    );
    setHidden(reset, window === null);
  }

  /** What does not fit wraps out of sight: the quantity that is shown comes first then. */
  function keepInSight(home) {
    if (chips.dataset.home === home) return;
    chips.dataset.home = home;
    const all = [...chips.children];
    for (const chip of all) chip.style.order = "";
    const shown = all.find((chip) => chip.getAttribute("data-quantity") === home);
    if (shown && shown.offsetTop > all[0].offsetTop) shown.style.order = -1;
  }

  refresh();
  return { el };
}

function quantityChip(name, state) {
  const summary = state.model.quantities.find((one) => one.name === name)?.summary ?? "";
  return element(
    "button",
    { class: "nbp-chip", type: "button", "data-quantity": name, title: summary },
    name,
  );
}
