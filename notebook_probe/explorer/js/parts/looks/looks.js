/** Look: keeps the tensors of a module at the next step, and shows them in place of the heat map. */

import { queuedText } from "../../controls/queued.js";
import { element, isGreyed, setAttribute, setGreyed, setHidden, setText } from "../../dom.js";
import { bytes, grouped } from "../../format.js";
import { ROOT } from "../../names.js";
import { createLookView } from "./look_view.js";

const ONE = "Looks at one module at a time: mark it in the tree";
const LEFT = "Requested on the parent branch";
const IDLE = "It waits for the next training step: no loop runs now, and the last inputs no longer exist or changed";
const KEEPS = "Keep input, output, gradient, weight and update";
/** @type {Record<string, string>} */
const WHEN = { false: "at the next step", true: "at the next step, when training continues" };

/**
 * `instead` is what a look stands in place of.
 * @param {PanelParts & { instead: HTMLElement }} parts
 */
export function createLooks({ instead, ...parts }) {
  const { state, link, signal } = parts;
  const button = element("button", { type: "button", "data-action": "look" }, "Look");
  const inBar = element("button", { type: "button", "data-action": "look-paused", hidden: "" }, "Look");
  const buttons = [button, inBar];
  const outcome = element("div", { class: "nbp-look-said nbp-ticket nbp-bad", role: "status" });
  const kept = element("span", { class: "nbp-soft", "data-role": "looks-kept", hidden: "" }); // in the foot
  const view = createLookView({ ...parts, again: ask, leave, move });
  /** @type {{ id: string, module: string, before: number, branch: number } | null} */
  let asked = null; // { id, module, before, branch }: until what it asks for is kept; before: step of the newest
  /** @type {WantedLook | null} */
  let shown = null; // { module, step, other, sample }

  for (const one of buttons) one.addEventListener("click", pressed, { signal });
  for (const topic of ["looks", "marked", "status", "tickets", "model", "breaks", "history"]) state.on(topic, refresh);
  state.on("shown_look", arrived);
  state.on("pressed", showPressed);

  /**
   * What is marked; of nothing, where the run is paused.
   * @returns {string | null}
   */
  function wanted() {
    if (state.marked.size) return state.marked.size === 1 ? [...state.marked][0] : null;
    const paused = state.parts.breaks.rows.find(({ pauses: it, module }) => it && module !== ROOT);
    return paused && state.model.byPath.has(paused.module) ? paused.module : null;
  }

  /** @type {(module: string) => LookRow[]} */
  const keptOf = (module) => state.parts.looks.looks.filter((one) => one.module === module);

  function pressed() {
    if (isGreyed(button)) return;
    const module = wanted();
    showNewest(module);
    if (module !== null && state.model.live) ask(module);
  }

  /** @param {string | null} module */
  function showNewest(module) {
    const newest = (module === null ? state.parts.looks.looks : keptOf(module)).at(-1);
    if (newest) move({ module: newest.module, step: newest.step, other: -1, sample: 0 });
  }

  /** A square was clicked: the look that it stands for; of several the module that is shown or marked. */
  function showPressed() {
    const { kind, step } = state.pressed ?? { kind: "", step: -1 };
    if (!["look", "shown_look"].includes(kind)) return;
    const there = state.parts.looks.looks.filter((one) => one.step === step);
    /** @type {(module: string | null) => LookRow | undefined} */
    const of = (module) => there.find((one) => one.module === module);
    const look = of(shown?.module ?? null) ?? of(wanted()) ?? there.at(-1);
    if (look) move({ module: look.module, step, other: -1, sample: shown?.sample ?? 0 });
  }

  /**
   * Step of the newest of a module; how many there are stays the same once the oldest goes.
   * @param {string} module
   */
  const newestOf = (module) => keptOf(module).at(-1)?.step ?? -1;

  /** @param {string} module */
  function ask(module) {
    const { branch } = state.parts.history;
    asked = { id: link.ask("look", { module }), module, before: newestOf(module), branch };
    view.say("");
    setText(outcome, "");
    refresh();
  }

  /** @param {WantedLook} wanted */
  function move(wanted) {
    shown = wanted;
    link.send("show_look", { view: link.view, ...wanted });
  }

  /**
   * Samples of a batch are a look at the model itself.
   * @param {number} step
   */
  function showBatch(step) {
    move({ module: ROOT, step, other: -1, sample: 0 });
  }

  function leave() {
    shown = null;
    place(null);
    button.focus();
  }

  /**
   * Show what was asked for in place of the heat map, or that again.
   * @param {WantedLook | null} look
   */
  function place(look) {
    setHidden(view.el, !look);
    setHidden(instead, look !== null);
    tally();
    setAttribute(view.el, "data-step", look ? look.step : -1);
    state.looked = look ? look.step : null;
    state.emit("looked");
  }

  /** How much is kept, while one of it is looked at. */
  function tally() {
    const { looks, most } = state.parts.looks;
    const size = bytes(looks.reduce((sum, { nbytes }) => sum + nbytes, 0));
    const told = `${looks.length} ${looks.length === 1 ? "look" : "looks"} kept, ${size}`;
    const isFull = looks.length >= most;
    const limit = !most ? "" : isFull ? "; the oldest goes for the next" : `; the record keeps at most ${most}`;
    setText(kept, state.alerts.length ? told : told + limit); // alerts need the room
    setAttribute(kept, "title", told + limit);
    if (kept.hidden === view.el.hidden) return;
    setHidden(kept, view.el.hidden);
    state.emit("looking");
  }

  function arrived() {
    const message = state.parts.shown_look;
    if (!shown || message?.view !== link.view || message.step !== shown.step) return;
    if (message.module !== shown.module) return;
    place(shown); // first: what is enlarged has as much room as there is
    view.show(message, keptOf(shown.module));
  }

  function refresh() {
    const { paused } = state.parts.breaks;
    setHidden(button, !state.model.live && !state.parts.looks.looks.length);
    setHidden(inBar, !paused);
    const module = wanted();
    const nothing = !state.model.live && (module === null || !keptOf(module).length);
    const why = module === null ? ONE : nothing ? `No look is stored of ${module}` : state.status.can.look ?? "";
    const reason = nothing || module === null || state.model.live ? why : "";
    for (const one of buttons) setGreyed(one, reason, `${KEEPS} of ${module} ${WHEN[String(Boolean(paused))]} (l)`);
    follow();
    if (shown) view.list(keptOf(shown.module), shown);
    tally();
  }

  /** What became of the last request: a ticket, then a look that is kept, or the reason why not. */
  function follow() {
    setText(inBar, asked ? "Looking …" : "Look");
    if (!asked) return setText(button, "Look");
    const { id, module } = asked;
    const ticket = state.status.tickets.find((one) => one.id === id);
    if (ticket?.state === "refused") return over(ticket.text);
    const newest = newestOf(module);
    const isThere = ticket?.state === "applied" && newest === ticket.applied_step; // computed at rest before
    if (newest > asked.before || isThere) {
      settle();
      return move({ module, step: newest, other: -1, sample: shown?.sample ?? 0 });
    }
    if (asked.branch !== state.parts.history.branch) return over(LEFT);
    const step = ticket?.applied_step ?? -1;
    const missed = state.parts.looks.missed.find(([path, at]) => path === module && at === step);
    if (missed && ticket?.state === "applied") return over(missed[2]);
    const at = step >= 0 ? `step ${grouped(step)}` : "the next step";
    outcome.classList.remove("nbp-bad");
    setText(outcome, queuedText(state, "") ? IDLE : "");
    return setText(button, `Looking at ${at} …`);
  }

  /** @param {string} text */
  function over(text) {
    settle();
    setGreyed(button, "", text);
    view.say(text);
    outcome.classList.add("nbp-bad");
    setText(outcome, text);
  }

  function settle() {
    asked = null;
    setText(outcome, "");
    for (const one of buttons) setText(one, "Look");
  }

  /**
   * An earlier look, or a later one; where none is shown, the newest that is kept.
   * @param {number} by
   */
  function go(by) {
    const module = wanted();
    if (shown) view.go(by);
    else showNewest(module !== null && keptOf(module).length ? module : null);
  }

  refresh();
  return { el: view.el, button, inBar, outcome, kept, look: pressed, go, ask, showBatch };
}
