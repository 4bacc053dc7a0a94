/** The words of a run's alerts, beside the badge that counts them. */

import { element, listener } from "../../js/dom.js";
import { alertWords } from "./row.js";

/** @typedef {{ root: HTMLElement, rows: TableRows, body: RunsBody, signal: AbortSignal }} TipParts */

let count = 0; // ids are of the page

/**
 * Shown while the pointer is on a badge, or a row has the focus of the keyboard.
 * @param {TipParts} parts
 */
export function createTip({ root, rows, body, signal }) {
  const id = `nbp-runs-tip-${(count += 1)}`;
  const el = element("div", { class: "nbp-runs-tip", role: "tooltip", id, hidden: "" });
  const listen = listener(signal);
  listen(body.el, "pointerover", ({ target }) => target.closest(".nbp-runs-badge") && show(target));
  listen(body.el, "pointerout", ({ target }) => target.closest(".nbp-runs-badge") && hide());
  listen(body.el, "focusin", ({ target }) => (target.matches("tr:focus-visible") ? show(target) : hide()));
  listen(body.el, "focusout", hide);
  root.addEventListener("keydown", (event) => event.key === "Escape" && hide(), { signal });

  /** @param {HTMLElement} target */
  function show(target) {
    const row = target.closest("tr");
    const at = Number(row?.dataset.at);
    const found = rows.looks.get(at);
    const marked = body.rowOf(at);
    if (!row || !marked || !found?.n_alerts) return hide();
    el.textContent = alertWords(found);
    el.hidden = false;
    row.setAttribute("aria-describedby", id);
    const [room, badge] = [root.getBoundingClientRect(), marked.badge.getBoundingClientRect()];
    el.style.left = `${Math.max(8, Math.min(badge.left - room.left, room.width - el.offsetWidth - 8))}px`;
    el.style.top = `${badge.bottom - room.top + 5}px`;
    return undefined;
  }

  function hide() {
    el.hidden = true;
  }

  return { el, hide };
}
