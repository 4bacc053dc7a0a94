/** A line of what watching costs: a quantity, its share of a step, and what would cost less. */

import { element, setAttribute, setGreyed, setHidden, setText } from "../../dom.js";
import { THIN_SPACE, significant } from "../../format.js";
import { costOn, sparser } from "./schedules.js";

const DEAR_PERCENT = 2.5;

/** @type {(value: number) => string} */
export const percentText = (value) => `${significant(value, 2)}${THIN_SPACE}%`;

/**
 * What a group would be measured on instead, "" for nothing, and the per cent it would take then.
 * @param {ProbeGroup} group
 * @returns {Offer}
 */
export function offerOf(group) {
  const instead = group.everyStep ? null : sparser(group.schedule);
  const left = instead === null ? null : costOn(instead, group, false);
  return instead === null || left === null ? { group, instead: null, left: null } : { group, instead, left };
}

/**
 * `take(offer)` is called by a click; `cells` stay the same whatever they say: a press is not lost.
 * @param {Offer} first
 * @param {{ take: (offer: Offer) => void, signal: AbortSignal }} calls
 */
export function createDearRow(first, { take, signal }) {
  const { instead, group } = first;
  const name = element("code", { title: group.quantity }, group.quantity);
  const where = element("span", { class: "nbp-soft" });
  const now = element("code", { class: "nbp-soft" }, group.schedule);
  const share = element("b");
  const bar = element("i", { class: "nbp-share", "aria-hidden": "true" }, element("i"));
  const left = element("span");
  const act = instead
    ? element(
        "button",
        { type: "button", class: "nbp-instead", "data-quantity": group.quantity },
        element("code", {}, instead),
        " ",
        left,
      )
    : element("span", { class: "nbp-soft" }, group.everyStep ? "reads every step" : "");
  let offer = first;
  if (instead) act.addEventListener("click", () => take(offer), { signal });
  return {
    cells: [name, where, now, share, element("span", {}, bar), act],
    /**
     * `most` is what the dearest takes, `reason` why nothing can be changed.
     * @param {Offer} told
     * @param {number} most
     * @param {string} reason
     */
    describe(told, most, reason) {
      offer = told;
      const { percent } = told.group;
      setText(where, told.group.where);
      setText(share, percentText(percent));
      setAttribute(share, "class", percent >= DEAR_PERCENT ? "" : "nbp-soft");
      bar.style.width = `${Math.max(2, (100 * percent) / most)}%`;
      bar.children[0].style.width = `${(100 * (told.left ?? percent)) / percent}%`;
      if (told.left === null) return;
      setText(left, percentText(told.left));
      setGreyed(act, reason);
    },
  };
}

/**
 * What all others take together; `open` shows the list of all.
 * @param {{ open: () => void, signal: AbortSignal }} calls
 */
export function createRestRow({ open, signal }) {
  const words = element("span", { class: "nbp-soft" });
  const share = element("span");
  const list = element("button", { type: "button", class: "nbp-link" });
  list.addEventListener("click", open, { signal });
  return {
    cells: [words, element("span"), element("span"), share, element("span"), list],
    /** @param {{ text: string, percent: number, link: string, title: string }} told */
    describe({ text, percent, link, title }) {
      setText(words, text);
      setAttribute(words, "title", title);
      setHidden(list, !link);
      setText(share, percentText(percent));
      setText(list, link);
    },
  };
}
