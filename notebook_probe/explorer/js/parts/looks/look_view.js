/** One look: a header to go through those that are kept, its tensors, the chosen map and facts. */

import { element, listener, setAttribute, setChildren, setGreyed, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { valueOr } from "../../maps.js";
import { blockScale, createBlock, mapsOf } from "./block.js";
import { createEnlarged } from "./enlarged.js";
import { factsTable } from "./facts.js";
import { inOrder } from "./block_order.js";
import { createSamplePicture } from "./sample_picture.js";

/** @typedef {ShownLook & { numbers: Float32Array }} ToldLook */
/** @typedef {{ again: (module: string) => void, leave: () => void, move: (wanted: WantedLook) => void }} LookCalls */

/** @type {Record<string, [number, number]>} */
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** @param {Pick<PanelParts, "state" | "theme" | "signal"> & LookCalls} parts */
export function createLookView({ state, theme, again, leave, move, signal }) {
  const back = button("‹ heat map", "leave-look", "nbp-link");
  const path = element("bdi");
  const module = element("b", { class: "nbp-look-module" }, path);
  const kind = element("span", { class: "nbp-soft nbp-look-kind" });
  const why = element("p", { class: "nbp-soft nbp-look-why", hidden: "" });
  const earlier = arrow("‹", "earlier-look", "Earlier look");
  const later = arrow("›", "later-look", "Later look");
  const place = element("span", { class: "nbp-look-place" });
  const retake = button("Look again", "look-again", "nbp-main");
  const sample = element("select", { "aria-label": "Sample", "data-role": "look-sample" });
  const picture = createSamplePicture();
  const other = element("select", { "aria-label": "Second look", "data-role": "look-other" });
  const difference = element("input", { type: "checkbox", "data-role": "look-difference" });
  const said = element("div", { class: "nbp-look-said nbp-bad", role: "status", hidden: "" });
  const blocks = element("div", { class: "nbp-look-blocks" });
  const enlarged = createEnlarged({ theme, signal });
  const facts = element("div");
  const beside = element("label", { class: "nbp-look-difference" }, difference, "difference");
  const steps = element("span", { class: "nbp-look-steps" }, earlier, place, later, retake);
  const choices = element("div", { class: "nbp-look-choices" }, picture.el, sample, other, beside);
  const el = element(
    "div",
    { class: "nbp-look", hidden: "", role: "region", "aria-label": "Look" },
    element("div", { class: "nbp-look-bar" }, back, module, kind, steps),
    why,
    said,
    element(
      "div",
      { class: "nbp-look-body" },
      blocks,
      element("div", { class: "nbp-look-side" }, choices, enlarged.el, facts),
    ),
  );
  /** @type {Map<string, ReturnType<typeof createBlock>>} */
  const views = new Map(); // tensor -> its block
  /** @type {ToldLook | null} */
  let told = null; // the message with its numbers
  /** @type {LookRow[]} */
  let kept = [];
  /** @type {WantedLook | null} */
  let wanted = null;
  let chosen = { tensor: "", place: 0 };

  const listen = listener(signal);
  listen(back, "click", leave);
  listen(retake, "click", () => told && again(told.module));
  listen(earlier, "click", () => go(-1));
  listen(later, "click", () => go(1));
  listen(sample, "change", () => wanted && move({ ...wanted, sample: Number(sample.value) }));
  listen(other, "change", () => wanted && move({ ...wanted, other: Number(other.value) }));
  listen(difference, "change", paint);
  listen(el, "keydown", pressed);
  state.on("theme", paint);

  /**
   * Arrows choose a channel, with Shift a pixel of it.
   * @param {KeyboardEvent} event
   */
  function pressed(event) {
    const way = event.target.matches("select, input") ? undefined : MOVES[event.key];
    if (event.key === "Escape") leave();
    else if (!way || !told?.blocks.length) return;
    else if (event.shiftKey) enlarged.step(...way);
    else views.get(event.target.dataset.tensor ?? chosenBlock(told).tensor)?.step(...way);
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * The block whose map is enlarged.
   * @param {ToldLook} look
   */
  function chosenBlock(look) {
    return look.blocks.find((one) => one.tensor === chosen.tensor) ?? inOrder(look)[0];
  }

  /** @param {number} by */
  function go(by) {
    const at = kept.findIndex((one) => one.step === wanted?.step) + by;
    if (wanted && kept[at]) move({ ...wanted, step: kept[at].step });
  }

  function paint() {
    if (!told?.blocks.length) return;
    const { ground } = theme.read();
    const { numbers } = told;
    const shown = inOrder(told).map((block) => {
      const view = valueOr(views, block.tensor, () => createBlock({ theme, chosen: choose, signal }));
      const scale = blockScale(block, numbers, ground);
      view.show({ block, maps: mapsOf(block, numbers, block.offset, scale), scale }, chosen.place);
      return view.el;
    });
    setChildren(blocks, shown);
    paintChosen(told, ground);
  }

  /**
   * @param {ToldLook} look
   * @param {string} ground
   */
  function paintChosen(look, ground) {
    const { numbers } = look;
    const block = chosenBlock(look);
    const scale = blockScale(block, numbers, ground);
    const index = Math.max(0, block.places.indexOf(chosen.place));
    const map = mapsOf(block, numbers, block.offset, scale)[index];
    const before = block.other === undefined ? null : mapsOf(block, numbers, block.other, scale)[index];
    const isDifference = difference.checked && before !== null;
    enlarged.show({ block, map, before, scale, step: look.step, otherStep: look.other, isDifference });
    facts.replaceChildren(factsTable(block, look.step, look.other));
    setHidden(beside, before === null);
  }

  /**
   * @param {string} tensor
   * @param {number} place
   */
  function choose(tensor, place) {
    chosen = { tensor, place };
    paint();
  }

  /** @param {ToldLook} look */
  function fillChoices({ blocks: all, numbers, sample: chosenSample }) {
    const n = Math.max(...all.map((block) => block.n_samples), 0);
    setHidden(sample, n < 2);
    const input = all.find((block) => block.tensor === "input");
    picture.show(n < 2 ? undefined : input, numbers, chosenSample);
    fill(sample, Array.from({ length: n }, (_, k) => [k, `sample ${k}`]), chosenSample);
  }

  /** Those that can stand beside it: more of them while it is looked at. */
  function fillOthers() {
    if (!told) return;
    const { step, other: chosenOther } = told;
    const others = kept.filter((one) => one.step !== step);
    /** @type {Array<[number, string]>} */
    const pairs = others.map((one) => [one.step, `with step ${grouped(one.step)}`]);
    fill(other, [[-1, "alone"], ...pairs], chosenOther);
    setGreyed(other, others.length ? "" : "There is no second look");
    other.disabled = !others.length;
  }

  return {
    el,
    go,
    /**
     * @param {ShownLook} message
     * @param {LookRow[]} looks
     */
    show(message, looks) {
      const numbers = message.buffers?.[0];
      told = { ...message, numbers: numbers ? floats(numbers) : new Float32Array(0) };
      if (message.error) this.say(`Step ${grouped(message.step)}: ${message.error}`);
      this.list(looks, message);
      const row = state.model.byPath.get(message.module);
      setText(path, message.module);
      setAttribute(module, "title", message.module);
      setText(kind, row?.kind ?? "");
      setText(why, looks.find((one) => one.step === message.step)?.why ?? "");
      setHidden(why, !why.textContent);
      fillChoices(told);
      setHidden(retake, !state.model.live);
      paint();
    },
    /**
     * Those that are kept of the module, and which of them is shown.
     * @param {LookRow[]} looks
     * @param {WantedLook} shown
     */
    list(looks, shown) {
      const { module: path, step, other: second, sample: chosenSample } = shown;
      [kept, wanted] = [looks, { module: path, step, other: second, sample: chosenSample }];
      const at = kept.findIndex((one) => one.step === shown.step);
      const rank = at < 0 ? "not kept any more" : `${at + 1} of ${kept.length} kept`;
      setText(place, `step ${grouped(shown.step)} · ${rank}`);
      setGreyed(earlier, at > 0 ? "" : "This is the first");
      setGreyed(later, at < kept.length - 1 ? "" : "This is the last");
      fillOthers();
    },
    /** @param {string} text */
    say(text) {
      setText(said, text);
      setHidden(said, !text);
    },
  };
}

/** @param {Buffers[number]} view */
function floats(view) {
  const { buffer, byteOffset, byteLength } = view;
  return new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
}

/**
 * @param {HTMLSelectElement} select
 * @param {Array<[number, string]>} options
 * @param {number} value
 */
function fill(select, options, value) {
  const wanted = JSON.stringify(options);
  if (select.dataset.options !== wanted) {
    select.dataset.options = wanted;
    select.replaceChildren(...options.map(([key, text]) => element("option", { value: key }, text)));
  }
  select.value = String(value);
}

/**
 * @param {string} text
 * @param {string} action
 * @param {string} kind
 */
function button(text, action, kind) {
  return element("button", { class: kind, type: "button", "data-action": action }, text);
}

/**
 * @param {string} text
 * @param {string} action
 * @param {string} label
 */
function arrow(text, action, label) {
  return element("button", { type: "button", "data-action": action, "aria-label": label }, text);
}
