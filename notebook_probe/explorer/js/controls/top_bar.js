/** The top bar: is it running, how far, how fast, what does watching cost, and the controls. */

import { element, isGreyed, listener, setAttribute, setGreyed, setHidden, setText } from "../dom.js";
import { dayAndTime, grouped, significant, timeLeft } from "../format.js";
import { createFoldedWords } from "./folded_words.js";
import { paintSparkline } from "./sparkline.js";
import { hasEnded } from "../state.js";

/**
 * @typedef {{
 *   compare: Word,
 *   knobs: Word,
 *   probes: Word,
 *   breaks: Word & { reason: HTMLElement },
 *   look: HTMLElement,
 *   dock: Word,
 * }} TopBarParts
 */
/** @typedef {{ el: HTMLElement }} Word */

const MOVING = ["waiting", "training", "paused"];
const BLIND = "after the cell";

const LOST = ["dead", "restarted"]; // kernels that do not come back
/** @type {Record<string, string>} */
const KERNEL_WORDS = { dead: "kernel dead", restarted: "kernel restarted", busy: "kernel busy" };

/** @param {Pick<PanelParts, "root" | "state" | "theme" | "link" | "signal"> & TopBarParts} parts */
export function createTopBar({ root, state, theme, link, compare, knobs, probes, breaks, look, dock, signal }) {
  const modules = element(
    "button",
    {
      class: "nbp-fold-tree",
      type: "button",
      "data-action": "modules",
      "aria-expanded": "false",
      "aria-label": "Modules",
      title: "Modules",
    },
    "☰",
  );
  const branch = element("span", { class: "nbp-branch nbp-soft", hidden: "" });
  const dot = element("i", { class: "nbp-dot", "aria-hidden": "true" });
  const word = element("span");
  const before = element("span", { class: "nbp-before" });
  const step = element("b");
  const at = element("span", {}, "step ");
  const end = element("span", { class: "nbp-end" });
  const rate = element("span", { class: "nbp-rate" });
  const scalar = element("span", { class: "nbp-scalar" });
  const spark = element("canvas", {
    class: "nbp-spark",
    role: "img",
    "aria-label": "Recent values",
  });
  const words = createFoldedWords([knobs.el, probes.el], signal);
  const route = element("span", { class: "nbp-soft nbp-route", role: "status" });
  const pause = controlButton("pause", "Pause");
  const one = controlButton("step", "Step");
  const stop = controlButton("stop", "Stop");
  const pausing = element("span", { class: "nbp-pausing" }, pause, breaks.el);
  const controls = element("span", { class: "nbp-controls" }, pausing, one, look, stop);
  const running = element("span", { class: "nbp-state" }, dot, word, before);
  const counter = element("span", { class: "nbp-step" }, at, step, end);
  const el = element(
    "div",
    { class: "nbp-bar" },
    modules,
    compare.el,
    branch,
    running,
    breaks.reason,
    element("span", { class: "nbp-far" }, counter, rate),
    scalar,
    spark,
    route,
    words.el,
    words.button,
    controls,
    dock.el,
  );
  /** @type {{ id: string, button: HTMLElement, refusedIn?: string } | null} */
  let asked = null;

  const listen = listener(signal);
  listen(modules, "click", () => {
    const open = root.classList.toggle("nbp-tree-open");
    setAttribute(modules, "aria-expanded", open);
  });
  for (const button of [pause, one, stop]) listen(button, "click", () => ask(button));
  for (const topic of ["status", "model", "silence", "theme", "saved", "history"]) state.on(topic, refresh);
  state.on("tickets", refreshAsked); // an answer has no time for the rest

  /** @param {HTMLElement} button */
  function ask(button) {
    if (isGreyed(button)) return;
    asked = { id: link.ask("control", { action: actionOf(button) }), button };
    button.classList.add("nbp-asked"); // seen at once, also when it acts at the next step
  }

  /**
   * @param {HTMLElement} button
   * @returns {ControlClick["action"]}
   */
  function actionOf(button) {
    if (button === pause) return state.status.state === "paused" ? "resume" : "pause";
    return button === one ? "step" : "stop";
  }

  function refresh() {
    const { status, model } = state;
    const ended = hasEnded(status);
    const { branch: number, fork } = state.parts.history;
    setHidden(branch, number === 1);
    setText(branch, `branch ${number}`);
    setAttribute(branch, "title", number === 1 ? null : `branch ${number}, from step ${grouped(fork ?? 0)}`);
    const unknown = state.silent || status.unheard;
    el.classList.toggle("nbp-stale", unknown);
    el.classList.toggle("nbp-ended", ended && model.live);
    setAttribute(el, "data-state", unknown ? "silent" : status.state);
    const { saved } = state.parts;
    const wasBefore = saved && MOVING.includes(status.state) ? "was " : "";
    setText(word, unknown ? "no answer" : wasBefore + status.state);
    setText(before, state.silent ? `, ${status.state} before` : "");
    const last = status.unheard ? `The last answer of the training: ${status.state}` : "";
    setAttribute(running, "title", last || howClicksAct(status, model) || null);
    setText(step, grouped(status.step));
    setText(at, saved ? "at step " : "step ");
    const endedAt = saved?.ended_ms ? ` ${dayAndTime(saved.ended_ms)}` : ""; // 0: there is no row
    setText(end, saved ? endedAt : howFar(status));
    const moving = status.state === "training" && status.rate !== null && !status.unheard;
    setText(rate, moving ? ` · ${significant(status.rate)}/s` : "");
    setAttribute(counter, "title", end.textContent ? `${at.textContent}${step.textContent}${end.textContent}` : null);
    setAttribute(rate, "title", "Recent steps per second");
    refreshScalar(status.scalar);
    setHidden(controls, !model.live || ended);
    const paused = status.state === "paused";
    setText(pause, paused ? "Continue" : "Pause");
    setAttribute(pause, "data-action", actionOf(pause));
    for (const button of [pause, one, stop]) {
      setGreyed(button, status.can[actionOf(button)] ?? "");
    }
    refreshAsked();
  }

  function refreshAsked() {
    const { status, model } = state;
    refreshRoute(status, model, hasEnded(status));
    const mine = status.tickets.find((ticket) => ticket.id === asked?.id);
    if (asked && mine && mine.state !== "queued") {
      asked.button.classList.remove("nbp-asked");
    }
  }

  /** @param {Status["scalar"]} last */
  function refreshScalar(last) {
    setHidden(scalar, !last);
    setHidden(spark, !last);
    if (!last) return;
    scalar.replaceChildren(`${last[0]} `, element("b", {}, significant(last[1])));
    paintSparkline(spark, last[2], theme.read().brand);
  }

  /**
   * @param {Status} status
   * @param {PanelModel} model
   * @param {boolean} ended
   */
  function refreshRoute(status, model, ended) {
    const mine = status.tickets.find((ticket) => ticket.id === asked?.id);
    if (asked && mine?.state === "refused") asked.refusedIn ??= status.state;
    const mended = asked?.refusedIn && asked.refusedIn !== status.state;
    const refusal = mine?.state === "refused" && !mended ? mine.text : "";
    setText(route, routeText(status, model, ended, refusal));
    route.classList.toggle("nbp-bad", state.silent || Boolean(refusal));
    const told = state.silent || status.route === BLIND || Boolean(refusal);
    route.classList.toggle("nbp-told", told && model.live);
    const title = state.silent ? silentTitle(state.kernel, model.location) : route.textContent;
    setAttribute(route, "title", title);
  }

  /**
   * @param {Status} status
   * @param {PanelModel} model
   * @param {boolean} ended
   * @param {string} refusal
   */
  function routeText(status, model, ended, refusal) {
    if (state.parts.saved) return "";
    if (!model.live) return "opened record";
    if (state.silent) return KERNEL_WORDS[state.kernel] ?? "kernel busy or restarted";
    if (refusal) return refusal;
    if (ended) return `ended at step ${grouped(status.step)}`;
    return status.route === BLIND ? "clicks act when the cell ends" : "";
  }

  return { el, probes, pausing, pause: () => pause.click(), step: () => one.click() };
}

/**
 * Under the state: which way a click takes while a cell runs.
 * @param {Status} status
 * @param {PanelModel} model
 */
function howClicksAct({ route }, { live }) {
  if (!live || !route) return "";
  if (route === BLIND)
    return "The kernel answers clicks when the cell ends; run.train_in_background(...) answers at once";
  return `Clicks are answered while a cell runs (by ${route})`;
}

/**
 * Behind the step: " of 1 875 · epoch 2 · 3 min left", as far as it is known.
 * @param {Status} status
 */
function howFar({ end_step, epoch, seconds_left }) {
  const parts = [
    epoch < 0 ? "" : `epoch ${grouped(epoch)}`,
    seconds_left === null ? "" : timeLeft(seconds_left),
  ];
  const of = end_step < 0 ? "" : ` of ${grouped(end_step)}`;
  return [of, ...parts.filter(Boolean)].join(" · ");
}

/**
 * @param {ControlClick["action"]} action
 * @param {string} text
 */
function controlButton(action, text) {
  return element("button", { type: "button", "data-action": action }, text);
}

/**
 * @param {string} kernel
 * @param {string} location of the record
 */
function silentTitle(kernel, location) {
  const open = `nbp.open_run(${JSON.stringify(location)}).explore() shows what was recorded`;
  return LOST.includes(kernel) ? open : "No message for some seconds; this is the last picture";
}
