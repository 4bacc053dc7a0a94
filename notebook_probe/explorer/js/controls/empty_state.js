/** Text and buttons in place of the plots, before there are values to draw. */

import { element, setHidden } from "../dom.js";
import { measured } from "../state.js";

const DEFAULTS = ["grad_norm", "weight_norm", "update_ratio"];

/**
 * @param {Pick<PanelParts, "state" | "signal"> & {
 *   attach: { send: (quantity: QuantityRow, rows: TreeRow[]) => void },
 * }} parts
 */
export function createEmptyState({ state, attach, signal }) {
  const words = element("p", { role: "status" });
  const buttons = element("div", { class: "nbp-buttons" });
  const el = element("div", { class: "nbp-empty", hidden: "" }, words, buttons);
  buttons.addEventListener(
    "click",
    (event) => {
      const name = /** @type {Element} */ (event.target).getAttribute("data-quantity");
      const quantity = state.model.quantities.find((one) => one.name === name);
      if (quantity) attach.send(quantity, []);
    },
    { signal },
  );
  for (const topic of ["model", "status"]) state.on(topic, refresh);

  function refresh() {
    const { status, model } = state;
    const empty = !measured(status).length;
    setHidden(el, !empty);
    el.classList.toggle("nbp-of-map", status.logged.length > 0); // the lines have something to show
    if (!empty) return;
    const offer = model.live && !status.attached.length ? defaultQuantities(model.quantities) : [];
    const sentence = whyEmpty(status, model);
    const wanted = JSON.stringify([sentence, offer]);
    if (el.dataset.shown === wanted) return;
    el.dataset.shown = wanted;
    words.textContent = sentence;
    buttons.replaceChildren(...offer.map(defaultButton));
  }

  refresh();
  return { el };
}

/** @param {QuantityRow[]} quantities */
function defaultQuantities(quantities) {
  const known = quantities.map((one) => one.name);
  const defaults = DEFAULTS.filter((name) => known.includes(name));
  return defaults.length ? defaults : known.slice(0, 3);
}

/** @param {string} name */
function defaultButton(name) {
  const title = `Measure ${name} at every layer that it fits`;
  return element("button", { type: "button", "data-quantity": name, title }, name);
}

/**
 * @param {Status} status
 * @param {PanelModel} model
 */
function whyEmpty(status, model) {
  const hasRows = status.step > 0 && Object.keys(status.vectors).length > 0;
  if (!model.live && !hasRows) return "This record has no values.";
  if (model.live && !status.attached.length) {
    const how = "Select modules on the left, choose a quantity and click Attach";
    return `Nothing is measured yet. ${how}; or start with one of these on every layer:`;
  }
  const [silent] = status.silent;
  if (model.live && status.state === "waiting" && silent?.kind === "waiting")
    return `Run the cell that trains: ${silent.reason}.`;
  if (silent) return silent.reason;
  const vectors = Object.keys(status.vectors).join(", ");
  return vectors
    ? `Recorded, but not drawn here: ${vectors}.`
    : "Waiting for the first value of the first step.";
}
