/** A number of a sentence that is edited in place: Enter keeps it, Escape takes it back. */

import { element } from "../../dom.js";

/**
 * @typedef {{
 *   name: string,
 *   before: string,
 *   after: string,
 *   fits: (value: number) => boolean,
 *   refusal: string,
 *   kept: (value: number) => void,
 *   said: (reason: string) => void,
 *   signal: AbortSignal,
 * }} PartNumberParts
 */

/**
 * `kept(value)` is called with a number that fits; `said(reason)` with why one does not, or "".
 * @param {PartNumberParts} parts
 */
export function createPartNumber({ name, before, after, fits, refusal, kept, said, signal }) {
  const input = element("input", {
    type: "text",
    inputmode: "decimal",
    "aria-label": name,
    "data-number": name,
    spellcheck: "false",
  });
  const el = element("label", { class: "nbp-threshold nbp-part-number" }, before, input, after);
  let value = 0;
  const parsed = () => Number(input.value.trim().replace(",", ".") || NaN);
  input.addEventListener("input", () => said(fits(parsed()) ? "" : refusal), { signal });
  input.addEventListener("input", resize, { signal });
  input.addEventListener("blur", () => show(value), { signal });
  input.addEventListener("keydown", pressed, { signal });

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (event.key === "Escape" && parsed() !== value) back();
    else if (event.key === "Enter") keep();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function back() {
    put(value);
    said("");
  }

  function keep() {
    const now = parsed();
    if (!fits(now)) return said(refusal);
    value = now;
    return kept(now);
  }

  /** @param {number} now */
  function put(now) {
    input.value = String(now);
    resize();
  }

  function resize() {
    input.style.width = `${Math.max(1, input.value.length) + 1.4}ch`;
  }

  /** @param {number} now */
  function show(now) {
    value = now;
    if (!input.matches(":focus")) put(now);
  }

  return { el, show };
}
