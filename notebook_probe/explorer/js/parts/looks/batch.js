/** The batch of a step: its samples where they are kept, else the nearest ones and how to get it. */

import { createTicket } from "../../dialogs/ticket.js";
import { element, isGreyed, setGreyed, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { ROOT } from "../../names.js";

const STAYS = 2; // steps after a jump at which an alert may report that it stays
const MOST_NEAR = 3;
const WHEN =
  "Samples are kept where an alert reports a jump of the loss or NaN, and where a breakpoint on a value pauses.";
const AS_BEFORE = { preset: "", schedule: "every(1)", until: null, rate: null };

/**
 * The kept batch that an alert of this step is about; undefined without one.
 * @param {Pick<PanelState, "parts">} state
 * @param {number} step
 */
export function batchOfAlert(state, step) {
  return kept(state).findLast((one) => one.step <= step && one.step >= step - STAYS && one.is_batch);
}

/**
 * `looks` shows one, and asks for one.
 * @param {PanelParts & { looks: { showBatch(step: number): void, ask(module: string): void } }} parts
 */
export function createBatch({ looks, ...parts }) {
  const { state, link, dialogs, signal } = parts;
  /** @type {(() => void) | null} */
  let describe = null; // of the open dialog
  /** @type {{ step: number, branch: number } | null} */
  let awaited = null; // the step before which a rewound run is to pause

  state.on("batch", open);
  for (const topic of ["status", "breaks", "history", "looks"]) state.on(topic, follow);

  function open() {
    if (!state.batch) return;
    const { step, anchor } = state.batch;
    if (kept(state).some((one) => one.step === step)) return looks.showBatch(step);
    const dialog = createDialog(step);
    const label = `Batch of step ${grouped(step)}`;
    dialogs.open({ anchor, label, content: dialog.el, closed: () => (describe = null) });
    describe = dialogs.isOpenAt(anchor) ? dialog.describe : null;
  }

  /** The rewound run pauses before the step: its batch is the model's input of that step. */
  function follow() {
    describe?.();
    const { status, parts: told } = state;
    if (!awaited || status.state !== "paused" || status.step !== awaited.step) return;
    if (told.history.branch === awaited.branch) return;
    awaited = null;
    dialogs.close();
    looks.ask(ROOT);
    link.ask("control", { action: "step" });
  }

  /** @param {number} step */
  function createDialog(step) {
    const ticket = createTicket({ state, signal });
    const near = element("p", {});
    const words = element("p", { class: "nbp-soft" }, WHEN);
    const back = element("button", { type: "button", class: "nbp-main", "data-action": "rewind-batch" });
    const backWords = element("p", { "data-role": "rewind-batch" });
    const next = element("button", { type: "button", "data-action": "next-batch" }, "Keep the next batch");
    const foot = element("footer", { role: "none" }, ticket.el, next, back);
    const title = element("h3", {}, `No samples of step ${grouped(step)} are kept`);
    const section = element("section", {}, near, words, backWords);
    const head = element("header", { role: "none" }, title);
    const el = element("div", { class: "nbp-sections nbp-batch" }, head, section, foot);
    const options = { signal };
    next.addEventListener("click", keepNext, options);
    back.addEventListener("click", rewind, options);

    function keepNext() {
      if (isGreyed(next)) return;
      dialogs.close();
      looks.ask(ROOT);
    }

    function rewind() {
      const from = checkpointBefore(state, step);
      if (isGreyed(back) || !from) return;
      awaited = { step, branch: state.parts.history.branch };
      ticket.follow(link.ask("rewind", { step: from.step, ...AS_BEFORE, pause_at: step }), "rewound");
      refresh();
    }

    function refresh() {
      fillNear(near, step);
      const { live } = state.model;
      const { way } = state.parts.history;
      const from = checkpointBefore(state, step);
      setHidden(foot, !live);
      setGreyed(next, state.status.can.look ?? "", "Keep what the model is called with in the next step");
      setHidden(back, !way || !from);
      setHidden(backWords, back.hidden);
      if (!way || !from) return;
      setText(back, `Rewind to ${grouped(from.step)} and keep it`);
      setGreyed(back, awaited ? "It has been asked for" : way.why_not, "A branch: the run before stays in the record");
      setText(backWords, backText(step - from.step, way));
    }

    refresh();
    return { el, describe: refresh };
  }

  /**
   * @param {HTMLElement} near
   * @param {number} step
   */
  function fillNear(near, step) {
    const away = (/** @type {LookRow} */ one) => Math.abs(one.step - step);
    const rows = kept(state).sort((one, other) => away(one) - away(other)).slice(0, MOST_NEAR);
    const key = rows.map((one) => one.step).join(" ");
    setHidden(near, !rows.length);
    if (near.dataset.steps === key) return; // what has the focus stays
    near.dataset.steps = key;
    near.replaceChildren("The nearest that are kept:", ...rows.flatMap((one) => [" ", linkTo(one)]));
  }

  /** @param {LookRow} one */
  function linkTo({ step, why }) {
    const node = element("button", { type: "button", class: "nbp-link", "data-batch": step }, `step ${grouped(step)}`);
    node.title = why || "Looked at by request";
    node.addEventListener("click", () => {
      dialogs.close();
      looks.showBatch(step);
    });
    return node;
  }
}

/**
 * The looks at the model itself, whose inputs are the batch.
 * @param {Pick<PanelState, "parts">} state
 */
function kept({ parts }) {
  return parts.looks.looks.filter((one) => one.module === ROOT);
}

/**
 * @param {Pick<PanelState, "parts">} state
 * @param {number} step
 */
function checkpointBefore({ parts }, step) {
  return parts.history.checkpoints.filter((one) => !one.gone && one.step <= step).at(-1);
}

/**
 * @param {number} n
 * @param {WayBackInfo} way
 */
function backText(n, { restores }) {
  const steps = n === 1 ? "1 step is" : `${grouped(n)} steps are`;
  const again = n ? `${steps} trained again, with the same batches` : "The step is trained again, with the same batch";
  const state = restores.charAt(0).toLowerCase() + restores.slice(1);
  return `${again} as far as the loop restores them (${state}). The run then pauses after this step, as a branch.`;
}
