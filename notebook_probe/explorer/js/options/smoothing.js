/** The weight of the running average: a slider, its value, and what of it is drawn. */

import { element, setAttribute, setText } from "../dom.js";
import { weightAt } from "../format.js";
import { smoothingText } from "./smoothing_text.js";

/**
 * `weight()` is the chosen one, `drawn()` those of the lines that are drawn with it.
 * @param {Pick<PanelParts, "signal"> & {
 *   weight: () => number,
 *   drawn: () => number[],
 *   change: (patch: { smooth: number }) => void,
 * }} parts
 */
export function createSmoothing({ weight: chosen, drawn, change, signal }) {
  const slider = element("input", {
    type: "range",
    min: "0",
    max: "3",
    step: "0.1",
    "data-role": "smooth",
    "aria-label": "Smoothing",
  });
  const weight = element("span", { class: "nbp-weight" });
  const sentence = element("div", { class: "nbp-hint" });
  const el = element(
    "div",
    { class: "nbp-choice-line" },
    element("span", { class: "nbp-choice-label" }, "Smoothing"),
    element("span", { class: "nbp-smooth" }, slider, weight),
    sentence,
  );
  slider.addEventListener(
    "input",
    () => change({ smooth: weightAt(Number(slider.value)) }),
    { signal },
  );

  return {
    el,
    show() {
      const smooth = chosen();
      if (weightAt(Number(slider.value)) !== smooth) slider.value = String(-Math.log10(1 - smooth));
      setAttribute(slider, "aria-valuetext", smooth);
      setText(weight, smooth ? String(smooth).padEnd(4, "0") : "none");
      setText(sentence, smoothingText(smooth, drawn()));
    },
  };
}
