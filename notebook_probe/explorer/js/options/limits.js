/** The lowest and the highest value of the y axis, by hand. */

import { element, setAttribute, setText } from "../dom.js";

/**
 * `limits()` are the chosen ones, null for none; `about()` says of what.
 * @param {Pick<PanelParts, "signal"> & {
 *   limits: () => [number, number] | null,
 *   change: (patch: { y_limits: [number, number] | null }) => void,
 *   about: () => string,
 * }} parts
 */
export function createLimits({ limits: chosen, change, about, signal }) {
  const [low, high] = [field("Lowest value", "y-low"), field("Highest value", "y-high")];
  const fit = element("button", { type: "button", class: "nbp-option", "data-action": "fit-y" }, "fit");
  fit.title = "Fit the axis to the lines again";
  const sentence = element("div", { class: "nbp-hint", role: "status" });
  const el = element(
    "div",
    { class: "nbp-choice-line" },
    element("span", { class: "nbp-choice-label" }, "Limits"),
    element("span", { class: "nbp-limits" }, low, " to ", high, " ", fit),
    sentence,
  );
  for (const node of [low, high]) node.addEventListener("change", changed, { signal });
  fit.addEventListener("click", () => change({ y_limits: null }), { signal });

  function changed() {
    const ends = [low, high].map(({ value }) => (value.trim() ? Number(value.replace(",", ".")) : NaN));
    if ([low, high].some(({ value }) => !value.trim())) return; // the other one is still to come
    const isRight = ends[0] < ends[1];
    for (const node of [low, high]) setAttribute(node, "aria-invalid", isRight ? null : "true");
    setText(sentence, isRight ? "" : "Two numbers are needed, the lower one first.");
    if (isRight) change({ y_limits: [ends[0], ends[1]] });
  }

  return {
    el,
    show() {
      const limits = chosen();
      fit.hidden = !limits;
      if (low.getAttribute("aria-invalid") !== "true") setText(sentence, about());
      if (low.matches(":focus") || high.matches(":focus")) return;
      [low.value, high.value] = (limits ?? ["", ""]).map(String);
    },
  };
}

/**
 * Which chart is the upper one, where there are others below it; "" for a single chart.
 * @param {Pick<PanelState, "lines">} state
 */
export function upperChart({ lines }) {
  const series = lines?.series ?? [];
  const first = Math.min(...series.map(({ chart }) => chart));
  const upper = series.filter(({ chart }) => chart === first).map(({ quantity }) => quantity);
  return upper.length < series.length ? `In the upper chart: ${[...new Set(upper)].join(", ")}.` : "";
}

/**
 * @param {string} label
 * @param {string} role
 */
function field(label, role) {
  const node = element("input", { type: "text", inputmode: "decimal", "aria-label": label, "data-role": role });
  node.style.width = "8ch";
  return node;
}
