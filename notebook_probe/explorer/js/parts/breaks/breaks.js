/** Breakpoints in the bar: the flag that opens their list, and why one of them pauses training. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { createPauseWhen } from "./pause_when.js";

const TITLE = "Pause when something happens: a step, an alert, a series, NaN, an error (b)";

/** @param {PanelParts} parts */
export function createBreaks(parts) {
  const { root, state, dialogs, signal } = parts;
  const count = element("span");
  const flag = element("i", { class: "nbp-flag", "aria-hidden": "true" });
  const button = element(
    "button",
    {
      class: "nbp-breaks",
      type: "button",
      title: TITLE,
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
      "data-action": "breaks",
    },
    flag,
    count,
    element("i", { class: "nbp-chevron", "aria-hidden": "true" }),
  );
  const reason = element("span", { class: "nbp-paused", role: "status" });
  let shown = ""; // the pause whose step the cursor has been moved to
  /** @type {ReturnType<typeof createPauseWhen> | null} */
  let list = null;

  button.addEventListener("click", open, { signal });
  state.on("breaks", refresh);

  function open() {
    list = createPauseWhen(parts);
    dialogs.open({ anchor: button, label: "Pause when", content: list.el, closed });
  }

  function closed() {
    list?.close();
    list = null;
  }

  function refresh() {
    const { rows, paused, live } = state.parts.breaks;
    const armed = rows.filter((row) => row.armed).length;
    setHidden(button, !live);
    setText(count, armed ? grouped(armed) : "");
    setAttribute(button, "aria-label", `Pause when: ${armed} armed`);
    setAttribute(root, "data-paused", paused ? "true" : null);
    setHidden(reason, !paused);
    if (!paused) {
      shown = "";
    } else if (paused.text !== shown) {
      shown = paused.text;
      reason.replaceChildren(...emphasized(paused.text));
      setAttribute(reason, "title", paused.text);
      pointAt(paused.step);
    }
    list?.refresh();
  }

  /** @param {number} step */
  function pointAt(step) {
    if (step < 0) return;
    state.cursor = { step, row: null, from: "kernel" };
    state.emit("cursor");
  }

  refresh();
  return { el: button, reason, open: () => button.click() };
}

/**
 * "paused at step 812: conv3 · grad_norm 12.3 > 10" with its step and the value in bold.
 * @param {string} text
 */
function emphasized(text) {
  const [, before, step, between, value, after] =
    text.match(/^(\D*)(\d+)(?:(.*? )(\S+)(?= (?:[<>]=?|crosses) )(.*))?/) ?? [];
  if (step === undefined) return [text];
  /** @type {(word: string) => HTMLElement} */
  const bold = (word) => element("b", {}, word);
  const rest = value === undefined ? text.slice(before.length + step.length) : "";
  const tail = value === undefined ? [rest] : [between, bold(value), after];
  return [before, bold(grouped(Number(step))), ...tail];
}
