/** The top bar: is it running, how far, how fast, what does watching cost, and the controls. */

import { element, isGreyed, setAttribute, setGreyed, setHidden, setText } from "../dom.js";
import { grouped, significant, timeLeft } from "../format.js";
import { createSilentProbes } from "./silent_probes.js";
import { paintSparkline } from "./sparkline.js";

const ENDED = ["finished", "failed"];

export function createTopBar({ state, theme, link, signal }) {
  const modules = element(
    "button",
    { class: "nbp-fold-tree", type: "button", "data-action": "modules", "aria-expanded": "false" },
    "☰ Modules",
  );
  const name = element("b", { class: "nbp-run" });
  const dot = element("i", { class: "nbp-dot", "aria-hidden": "true" });
  const word = element("span");
  const step = element("b");
  const rate = element("span", { class: "nbp-rate" });
  const scalar = element("span", { class: "nbp-scalar" });
  const spark = element("canvas", {
    class: "nbp-spark",
    role: "img",
    "aria-label": "Recent values",
  });
  const percent = element("span");
  const what = element("span", { class: "nbp-roomy" }, "probes ");
  const cost = element("span", { class: "nbp-soft nbp-cost" }, what, "cost ", percent);
  cost.title = "Time spent in probes and row keeping, per cent of step time, as measured lately";
  const route = element("span", { class: "nbp-soft nbp-route", role: "status" });
  const pause = controlButton("pause", "Pause");
  const one = controlButton("step", "Step");
  const stop = controlButton("stop", "Stop");
  const controls = element("span", { class: "nbp-controls" }, pause, one, stop);
  const running = element("span", { class: "nbp-state" }, dot, word);
  const end = element("span", { class: "nbp-end" });
  const counter = element("span", { class: "nbp-step" }, "step ", step, end);
  const el = element(
    "div",
    { class: "nbp-bar" },
    modules,
    name,
    running,
    counter,
    rate,
    scalar,
    spark,
    cost,
    createSilentProbes({ state, signal }).el,
    route,
    controls,
  );
  let asked = null;

  const listen = (button, run) => button.addEventListener("click", run, { signal });
  listen(modules, () => {
    const open = el.parentElement.classList.toggle("nbp-tree-open");
    setAttribute(modules, "aria-expanded", open);
  });
  for (const button of [pause, one, stop]) listen(button, () => ask(button));
  for (const topic of ["status", "model", "silence", "theme"]) state.on(topic, refresh);

  function ask(button) {
    if (isGreyed(button)) return;
    const action = button.getAttribute("data-action");
    asked = { id: link.ask("control", { action }), button };
    button.classList.add("nbp-asked"); // seen at once, also when it acts at the next step
  }

  function refresh() {
    const { status, model } = state;
    const ended = ENDED.includes(status.state);
    setText(name, model.name);
    el.classList.toggle("nbp-stale", state.silent);
    setAttribute(el, "data-state", state.silent ? "silent" : status.state);
    setText(word, state.silent ? `no answer, ${status.state} before` : status.state);
    setText(step, grouped(status.step));
    setText(end, howFar(status));
    const moving = status.state === "training" && status.rate !== null;
    setText(rate, moving ? `${significant(status.rate)} steps/s` : "");
    setHidden(rate, !model.live || ended); // while it may move again its place is kept
    setHidden(cost, status.cost_percent === null);
    setText(percent, `${significant(status.cost_percent ?? 0, 2)} %`);
    refreshScalar(status.scalar);
    refreshRoute(status, model, ended);
    setHidden(controls, !model.live || ended);
    const paused = status.state === "paused";
    setText(pause, paused ? "Resume" : "Pause");
    setAttribute(pause, "data-action", paused ? "resume" : "pause");
    for (const button of [pause, one, stop]) {
      setGreyed(button, status.can[button.getAttribute("data-action")] ?? "");
    }
    if (status.tickets.some((ticket) => ticket.id === asked?.id && ticket.state !== "queued")) {
      asked.button.classList.remove("nbp-asked");
    }
  }

  function refreshScalar(last) {
    setHidden(scalar, !last);
    setHidden(spark, !last);
    if (!last) return;
    scalar.replaceChildren(`${last[0]} `, element("b", {}, significant(last[1])));
    paintSparkline(spark, last[2], theme.read().brand);
  }

  function refreshRoute(status, model, ended) {
    const mine = status.tickets.find((ticket) => ticket.id === asked?.id);
    if (mine?.state === "refused") asked.refusedIn ??= status.state;
    const mended = asked?.refusedIn && asked.refusedIn !== status.state;
    const refusal = mine?.state === "refused" && !mended ? mine.text : "";
    setText(route, routeText(status, model, ended, refusal));
    route.classList.toggle("nbp-bad", state.silent || Boolean(refusal));
    const title = state.silent
      ? "No message for some seconds; the last picture stays"
      : "How clicks are answered while a cell runs";
    setAttribute(route, "title", title);
  }

  function routeText(status, model, ended, refusal) {
    if (!model.live) return "opened record";
    if (state.silent) return "kernel busy or restarted";
    if (refusal) return refusal;
    if (ended) return `ended at step ${grouped(status.step)}`;
    return status.route && `live: ${status.route}`;
  }

  return { el, pause: () => pause.click() };
}

/** Behind the step: " of 1 875 · epoch 2 · 3 min left", as far as it is known. */
function howFar({ end_step, epoch, seconds_left }) {
  const parts = [
    epoch < 0 ? "" : `epoch ${grouped(epoch)}`,
    seconds_left === null ? "" : timeLeft(seconds_left),
  ];
  const of = end_step < 0 ? "" : ` of ${grouped(end_step)}`;
  return [of, ...parts.filter(Boolean)].join(" · ");
}

function controlButton(action, text) {
  return element("button", { type: "button", "data-action": action }, text);
}
