/** The foot: what is wrong, in words; where the record lies; what can be taken away. */

import { element, isGreyed, listener, setAttribute, setGreyed, setHidden, setText } from "../dom.js";
import { THIN_SPACE, bytes, duration, grouped } from "../format.js";
import { hasEnded } from "../state.js";
import { createDownloads } from "./downloads.js";

/**
 * @typedef {Pick<PanelParts, "state" | "selection" | "link" | "signal"> & {
 *   alerts: { el: HTMLElement },
 *   parting: { el: HTMLElement },
 *   looks: { kept: HTMLElement },
 *   output: { word: HTMLElement },
 *   examination: { word: HTMLElement },
 * }} FooterParts
 */

const LIFT_TITLE = "Measure every due step again, whatever it costs; nbp.watch(..., budget=None) from the start";

/** @param {FooterParts} parts */
export function createFooter({ state, selection, link, alerts, parting, looks, examination, output, signal }) {
  const problems = element("div", { class: "nbp-problems", role: "status" });
  const others = element("button", {
    class: "nbp-link",
    type: "button",
    "data-action": "problems",
    "aria-expanded": "false",
    hidden: "",
  });
  const budget = element("span", { class: "nbp-stretched nbp-soft", role: "status" });
  const lift = element(
    "button",
    { class: "nbp-link", type: "button", "data-action": "lift-budget", title: LIFT_TITLE, hidden: "" },
    "measure all",
  );
  const progress = element("span", { class: "nbp-progress nbp-soft", hidden: "" });
  const record = element("span", { class: "nbp-record nbp-soft" });
  const facts = element("span", { class: "nbp-facts nbp-soft" });
  const dropped = element("span", { class: "nbp-dropped nbp-soft" });
  const downloads = createDownloads({ state, link, signal });
  downloads.el.prepend(examination.word, output.word);
  const where = element("span", { class: "nbp-where" }, record);
  const place = element("span", { class: "nbp-place" }, where, facts, dropped);
  const el = element(
    "div",
    { class: "nbp-foot" },
    problems,
    others,
    parting.el,
    alerts.el,
    looks.kept,
    element("span", { class: "nbp-budgeted" }, budget, lift),
    progress,
    place,
    downloads.el,
    downloads.code,
  );
  let all = false;

  const listen = listener(signal);
  listen(others, "click", () => {
    all = !all;
    refresh();
  });
  listen(lift, "click", () => {
    if (!isGreyed(lift)) link.ask("budget", { percent: null });
  });
  listen(problems, "click", (event) => {
    const row = event.target.closest("[data-show]");
    if (row) show(state.status.problems[Number(row.dataset.show)]);
  });
  const topics = ["status", "model", "alerts", "saved", "parting", "selection", "compare", "looking", "probes"];
  for (const topic of topics) state.on(topic, refresh);

  /**
   * Mark the module, reveal it in the tree, draw what was asked of it.
   * @param {ProblemRow} problem
   */
  function show({ module, quantity }) {
    if (state.model.byPath.has(module)) {
      state.marked = new Set([module]);
      state.emit("marked");
      state.emit("reveal");
    }
    if (!state.status.recorded[quantity]) return;
    if (state.status.recorded[quantity].includes(module)) selection.add(module, quantity);
    selection.change({ home: quantity });
  }

  function refresh() {
    const { status } = state;
    const listed = status.problems.slice(0, all ? undefined : 1);
    const wanted = JSON.stringify(listed);
    if (problems.dataset.shown !== wanted) {
      problems.dataset.shown = wanted;
      problems.replaceChildren(...listed.map(problemRow));
    }
    const rest = status.problems.length - 1;
    setHidden(others, rest < 1);
    setText(others, rest < 1 ? "" : all ? "fewer" : `and ${grouped(rest)} more`);
    setAttribute(others, "aria-expanded", all);
    setText(budget, status.budget && rarelyText(state.parts.probes.budget));
    setAttribute(budget, "title", status.budget ?? "");
    setHidden(budget, !status.budget);
    setHidden(lift, !status.budget || !state.model.live || hasEnded(status));
    setGreyed(lift, status.can.budget ?? "", LIFT_TITLE);
    setText(progress, status.progress);
    setHidden(progress, !status.progress);
    const path = status.record || state.model.location;
    setText(record, shortPath(path));
    const wrong = state.alerts.length > 0 || !parting.el.hidden; // they need the room
    setHidden(record, wrong || !looks.kept.hidden);
    const device = status.device === "cpu" ? "" : status.device; // the host goes without saying
    setText(facts, [device, bytes(status.nbytes), ...ageOf(status)].filter(Boolean).join(" · "));
    for (const node of [record, facts]) setAttribute(node, "title", path);
    setHidden(dropped, !status.dropped_rows && wrong);
    setText(dropped, ` · ${grouped(status.dropped_rows)} dropped`);
    setAttribute(dropped, "title", "Rows that were never written");
    dropped.classList.toggle("nbp-bad", status.dropped_rows > 0);
    const { saved } = state.parts;
    if (saved) {
      for (const node of [record, dropped]) setHidden(node, true);
      setText(facts, `${bytes(saved.nbytes)} in this ${saved.place} · full record ${bytes(status.nbytes)}`);
    }
  }

  /**
   * How old what is seen is: of a run here since its flush, of one elsewhere since its last row.
   * @param {Status} status
   */
  function ageOf({ flushed_age_s: age, ...status }) {
    if (state.model.live && hasEnded(status)) return []; // all of it is written
    if (state.model.live) return [age === null ? "not flushed yet" : `flushed ${duration(age)} ago`];
    return age === null ? [] : [`last row ${duration(age)} ago`];
  }

  refresh();
  return { el };
}

/**
 * That a budget is kept; what is measured how often is the title, and stands with the cost.
 * @param {number | null} percent
 */
function rarelyText(percent) {
  return `measured less often${percent === null ? "" : `: at most ${percent}${THIN_SPACE}% of a step`}`;
}

/**
 * The record and its folder; the whole path is the title.
 * @param {string} path
 */
function shortPath(path) {
  return path.includes("://") ? path : path.split(/[\\/]/).slice(-2).join("/");
}

/**
 * @param {ProblemRow} problem
 * @param {number} place
 */
function problemRow(problem, place) {
  const where = [problem.module, problem.quantity].filter(Boolean).join(" · ");
  const times = problem.count > 1 ? ` (${grouped(problem.count)} times)` : "";
  const off = problem.disabled ? "; this probe is off now" : "";
  const text = `▲ ${where ? `${where}: ` : ""}${problem.text}${times}${off}`;
  const row = element(
    "div",
    { class: "nbp-problem" },
    element("span", { class: "nbp-bad", title: text }, text),
  );
  if (problem.module) {
    row.append(
      element("button", { class: "nbp-link", type: "button", "data-show": place }, "show"),
    );
  }
  return row;
}
