/** Changes after a rewind: probes, learning rate, the step to pause at. */

import { element, setAttribute, setHidden } from "../../dom.js";

const EARLY = 5; // steps before the first alert at which it is to pause
const LATER = 50; // steps after it until which the denser probes last

/**
 * The rows above the line: probes, learning rate, where to pause.
 * @param {PanelState} state
 * @param {CheckpointRow} one
 * @param {number | null} first
 */
export function createBackForm(state, one, first) {
  const before = actionButton("as before", "as-before");
  const denser = actionButton("denser", "denser");
  const presets = element("select", { "aria-label": "Preset" });
  const schedule = input("Schedule", "every(1)", "9ch");
  const until = input("Until step", first === null ? "" : tens(first + LATER), "8ch");
  const rate = input("Learning rate", "", "11ch");
  rate.placeholder = "unchanged";
  const pauses = element("input", { type: "checkbox", "aria-label": "Pause" });
  const pauseAt = input("Pause at step", first === null ? "" : Math.max(one.step, first - EARLY), "8ch");
  pauses.checked = first !== null;
  const near = first === null ? "" : `${first - Number(pauseAt.value)} before the first alert`;
  const lasts = row("until step", until, soft("then unchanged"));
  const dense = element("span", { class: "nbp-form" }, presets, schedule);
  const el = element(
    "section",
    { class: "nbp-back-form" },
    row("measure", element("span", { class: "nbp-kinds", role: "group" }, before, denser), dense),
    lasts,
    row("learning rate", rate),
    row("pause at step", pauses, pauseAt, soft(near)),
  );
  let isDenser = false;

  const names = (state.parts.probes.presets ?? []).map((preset) => preset.name);
  presets.append(...names.map((name) => new Option(name)));
  if (names.includes("alerts")) presets.value = "alerts";
  before.addEventListener("click", () => choose(false));
  denser.addEventListener("click", () => choose(true));
  pauseAt.addEventListener("input", () => (pauses.checked = pauseAt.value.trim() !== ""));

  /** @param {boolean} wanted */
  function choose(wanted) {
    isDenser = wanted;
    describe();
  }

  function describe() {
    setAttribute(before, "aria-pressed", !isDenser);
    setAttribute(denser, "aria-pressed", isDenser);
    setHidden(dense, !isDenser);
    setHidden(lasts, !isDenser);
  }

  /** What the loop is asked for; null where a number is none. */
  function asked() {
    const [to, lr, at] = [until, rate, pauseAt].map(numberOf);
    if ([to, lr, at].some(Number.isNaN) || (pauses.checked && at === null)) return null;
    return {
      preset: isDenser ? presets.value : "",
      schedule: schedule.value,
      until: isDenser && to !== null ? Math.round(to) : null,
      rate: lr,
      pause_at: pauses.checked && at !== null ? Math.round(at) : null,
    };
  }

  return { el, describe, asked, evaluated: () => ({ preset: isDenser ? presets.value : "" }) };
}

/**
 * @param {string} name
 * @param {...(Node | string)} parts
 */
function row(name, ...parts) {
  return element("div", { class: "nbp-form" }, element("span", { class: "nbp-back-name" }, name), ...parts);
}

/** @param {string} text */
function soft(text) {
  return element("span", { class: "nbp-soft" }, text);
}

/**
 * @param {string} label
 * @param {string | number} value
 * @param {string} width
 */
function input(label, value, width) {
  const attributes = { type: "text", "aria-label": label, spellcheck: "false", style: `width: ${width}` };
  const node = element("input", attributes);
  node.value = String(value);
  return node;
}

/** @param {HTMLInputElement} field */
function numberOf({ value }) {
  const text = value.trim();
  return text === "" ? null : Number(text);
}

/** @param {number} step */
function tens(step) {
  return Math.ceil(step / 10) * 10;
}

/**
 * @param {string} text
 * @param {string} action
 * @param {string} [kind]
 */
export function actionButton(text, action, kind = "") {
  return element("button", { type: "button", class: kind, "data-action": action }, text);
}
