/** The attach box: what to measure at the marked modules, when, and what became of the click. */

import { element, isGreyed, listener, setAttribute, setGreyed, setText } from "../dom.js";
import { microseconds, modulesText } from "../format.js";
import { vectorCode } from "../names.js";
import { createPicker } from "../parts/picker/picker.js";
import { createAttachedList } from "./attached_list.js";
import { firstReason, fittingRows, misfitReason } from "./fitting.js";
import { createRequestOutcome } from "./request_outcome.js";
import { createScheduleExamples, fromHere } from "./schedule_examples.js";

/**
 * @typedef {Pick<PanelParts, "state" | "selection" | "link" | "dialogs" | "signal"> & {
 *   look: { button: HTMLElement, outcome: HTMLElement },
 * }} AttachParts
 */

const USEFUL = ["update_ratio", "grad_norm", "output_std", "weight_norm"]; // what most ask for first
const NO_SCHEDULE = "Say when to measure, such as every(10)";

/** @param {AttachParts} parts */
export function createAttach({ state, selection, link, dialogs, look, signal }) {
  const quantity = createPicker({ state, dialogs, chosen: picked, preset: attachPreset, signal });
  const schedule = element("input", {
    type: "text",
    value: "every(10)",
    "aria-label": "Schedule",
    placeholder: "every(10)",
    title: "When to measure, such as every(10)",
    "data-role": "schedule",
    spellcheck: "false",
  });
  const hint = element("div", { class: "nbp-hint" });
  const examples = createScheduleExamples({ field: schedule, signal });
  const attach = element(
    "button",
    { class: "nbp-main", "data-action": "attach", type: "button" },
    "Attach",
  );
  const detach = element("button", { "data-action": "detach", type: "button" }, "Detach");
  const attachedList = createAttachedList({ state, selection, signal });
  const outcome = createRequestOutcome({ state, selection, signal });
  const pair = element("span", { class: "nbp-pair" }, look.button, detach);
  const el = element(
    "div",
    { class: "nbp-attach" },
    element("div", { class: "nbp-two" }, quantity.el, schedule),
    examples.el,
    hint,
    element("div", { class: "nbp-buttons" }, attach, pair, attachedList.el),
    outcome.el,
    look.outcome,
  );
  let isPicked = false; // by somebody: it stays, and says why it does not fit

  const listen = listener(signal);
  listen(schedule, "input", changed);
  listen(schedule, "keydown", (event) => event.key === "Enter" && attachMarked());
  listen(attach, "click", attachMarked);
  listen(detach, "click", detachMarked);
  for (const topic of ["model", "marked"]) {
    state.on(topic, () => {
      choose();
      refresh();
      if (topic === "marked") outcome.mended();
    });
  }
  state.on("status", refresh);

  function picked() {
    isPicked = true;
    changed();
  }

  function changed() {
    outcome.mended();
    refresh();
  }

  const markedRows = () =>
    [...state.marked].flatMap((path) => state.model.byPath.get(path) ?? []);
  const chosen = () => state.model.quantities.find((one) => one.name === quantity.value);

  /** What was picked stays, and what fits; else it is the most useful that does. */
  function choose() {
    const { quantities } = state.model;
    const [one, rows] = [chosen(), markedRows()];
    if (one && (isPicked || !misfitReason(one, rows))) return;
    const fitting = quantities.filter((one) => !misfitReason(one, rows));
    const useful = USEFUL.map((name) => fitting.find((one) => one.name === name)).find(Boolean);
    quantity.value = (useful ?? fitting[0] ?? quantities[0])?.name ?? "";
  }

  function refresh() {
    const [one, rows] = [chosen(), markedRows()];
    const fitting = one ? fittingRows(one, rows) : [];
    const attached = attachedHere(rows, one);
    setText(attach, attachText(rows, fitting));
    setGreyed(attach, whyNot(one, rows));
    setText(detach, attached.some(([, name]) => name !== one?.name) ? "Detach all" : "Detach");
    const none = attached.length ? "" : "Nothing is attached at the marked modules";
    setGreyed(detach, state.status.can.detach || none);
    const words = one ? description(one, rows, state.status.costs[one.name]) : ["No quantity is known yet."];
    hint.replaceChildren(...words);
    setAttribute(hint, "data-fits", one ? !misfitReason(one, rows) : null);
  }

  /**
   * @param {QuantityRow | undefined} one
   * @param {TreeRow[]} rows
   */
  function whyNot(one, rows) {
    if (state.status.can.attach) return state.status.can.attach;
    if (!schedule.value.trim()) return NO_SCHEDULE;
    return one ? misfitReason(one, rows) : "Choose a quantity first";
  }

  /**
   * @param {TreeRow[]} rows
   * @param {QuantityRow | undefined} one
   */
  function attachedHere(rows, one) {
    // A search marks thousands: what the tree holds already is not collected again.
    const paths = rows.length === state.marked.size ? state.marked : new Set(rows.map((row) => row.path));
    const here = state.status.attached.filter(([module]) => paths.has(module));
    const same = here.filter(([, name]) => name === one?.name);
    return same.length ? same : here;
  }

  function attachMarked() {
    const one = chosen();
    if (one && !isGreyed(attach)) send(one, fittingRows(one, markedRows()));
  }

  /**
   * Of no rows: at the quantity's default places, which the kernel knows.
   * @param {QuantityRow} one
   * @param {TreeRow[]} rows
   */
  function send(one, rows) {
    const where = rows.map((row) => row.path);
    schedule.value = fromHere(schedule.value.trim(), state.status.step);
    const id = link.ask("attach", { where, quantity: one.name, schedule: schedule.value });
    outcome.follow(id, "attached", where, one.name);
  }

  /** The chosen quantity where it is attached; else everything at the marked modules. */
  function detachMarked() {
    if (isGreyed(detach)) return;
    const [one, rows] = [chosen(), markedRows()];
    const here = attachedHere(rows, one);
    const where = [...new Set(here.map(([module]) => module))];
    const name = one && here.every(([, other]) => other === one.name) ? one.name : "";
    outcome.follow(link.ask("detach", { where, quantity: name }), "detached", where, name);
  }

  /** @param {string} name */
  function attachPreset(name) {
    outcome.follow(link.ask("preset", { name }), "attached", [], name);
  }

  return { el, choose: quantity.open, attach: attachMarked, send };
}

/**
 * @param {TreeRow[]} rows
 * @param {TreeRow[]} fitting
 */
function attachText(rows, fitting) {
  if (!rows.length) return "Attach to its default modules";
  return fitting.length ? `Attach to ${modulesText(fitting.length)}` : "Attach";
}

/** @type {Record<string, string>} */
const KINDS = {
  vector: "A vector: its picture is above the lines.",
  image: "An image: recorded, not drawn here.",
};

/**
 * @param {string} kind
 * @param {string} module
 * @param {string} name
 */
function drawingHint(kind, module, name) {
  const drawing = element("code", {}, vectorCode(module, name));
  const where = ` ${kind} In Python, of notebook_probe.figures: `;
  return element("span", {}, where, drawing);
}

/**
 * One sentence, what it needs, what it costs, and who is left out.
 * @param {QuantityRow} one
 * @param {TreeRow[]} rows
 * @param {number | undefined} us
 */
function description(one, rows, us) {
  const reason = misfitReason(one, rows);
  const summary = one.summary.replaceAll("`", "").replace(/\.?\s*$/, ". ");
  const needs = one.needs.flatMap((feature, k) => [k ? ", " : "", element("i", {}, feature)]);
  const cost = !us ? "" : `About ${microseconds(us)} per step here.`;
  const parts = [summary, ...(needs.length ? ["Needs ", ...needs, ". "] : []), cost];
  if (one.value in KINDS) parts.push(drawingHint(KINDS[one.value], rows[0]?.path ?? "…", one.name));
  const left = rows.length - fittingRows(one, rows).length;
  if (reason) parts.push(element("span", { class: "nbp-reason" }, ` Does not fit: ${reason}.`));
  else if (left) parts.push(` ${modulesText(left)} left out: ${firstReason(one, rows)}.`);
  return parts;
}
