/** The rows in sight and a few beside them; what is above and below is room of the same height. */

import { element, listener } from "../../js/dom.js";
import { valueAt } from "../../js/maps.js";
import { createRow } from "./row.js";

/** @typedef {"open" | "tick" | "star" | "edit"} RowAct */
/** @typedef {{ isOpen: boolean, isTicked: boolean }} RowMark */
/**
 * @typedef {{
 *   rows: TableRows,
 *   scroller: HTMLElement,
 *   act: (kind: RowAct, at: number) => void,
 *   seen: (places: number[]) => void,
 *   signal: AbortSignal,
 * }} BodyParts
 */

const HEIGHT = 28; // of a row, as the style sheet has it
/** @type {Record<string, RowAct>} */
const MARKS = { s: "star", e: "edit" };
const BESIDE = 8; // rows that are made above and below those in sight

/**
 * `act(kind, at)` is told what is asked for of a row: "open", "tick". `seen(places)` is told which
 * rows are in sight.
 * @param {BodyParts} parts
 */
export function createBody({ rows, scroller, act, seen, signal }) {
  const [above, below] = [room(), room()];
  const el = element("tbody", {}, above, below);
  /** @type {Map<number, ReturnType<typeof createRow>>} */
  let made = new Map(); // place -> its row
  let focused = -1; // the row that has, or had, the focus
  /** @type {(at: number) => RowMark} */
  let marked = () => ({ isOpen: false, isTicked: false });

  const observer = new ResizeObserver(() => refresh());
  observer.observe(scroller); // it has no height before it stands in the page
  signal.addEventListener("abort", () => observer.disconnect());
  const listen = listener(signal);
  // Measuring at once would have the browser lay the page out again in the same frame.
  listen(scroller, "scroll", () => requestAnimationFrame(() => refresh()));
  listen(el, "click", clicked);
  listen(el, "focusin", (event) => (focused = placeOf(event.target)));
  listen(scroller, "keydown", pressed);

  /** Have the rows in sight; `anew` where what they show is another. */
  function refresh({ anew = false } = {}) {
    const isFocused = anew && hasFocus();
    if (anew) forget();
    const [start, end] = inSight();
    const places = rows.order.slice(start, end);
    const kept = new Map(places.map((at) => [at, made.get(at) ?? createRow(rows, at)]));
    const fresh = places.filter((at) => !made.has(at));
    const gone = [...made].filter(([at]) => !kept.has(at)).map(([, row]) => row.el);
    const hadFocus = gone.some((row) => row.contains(document.activeElement));
    if (hadFocus) scroller.focus({ preventScroll: true }); // keys go on from the same row
    for (const row of gone) row.remove();
    made = kept;
    let before = above;
    places.forEach((at, k) => {
      const row = valueAt(kept, at).el;
      if (before.nextSibling !== row) before.after(row);
      row.setAttribute("aria-rowindex", String(start + k + 2));
      before = row;
    });
    stretch(above, start);
    stretch(below, rows.order.length - end);
    for (const at of fresh) look(at);
    mark(marked);
    seen(places);
    if (isFocused) focus();
  }

  const hasFocus = () => Boolean(made.get(focused)?.el.contains(document.activeElement));
  const focus = () => made.get(focused)?.el.focus({ preventScroll: true });

  /** Rows are made anew at the next refresh; who had the focus has it again. */
  function forget(places = [...made.keys()]) {
    for (const at of places) {
      made.get(at)?.el.remove();
      made.delete(at);
    }
  }

  /** @param {(at: number) => RowMark} how */
  function mark(how) {
    marked = how;
    const stop = made.has(focused) ? focused : made.keys().next().value;
    for (const [at, row] of made) {
      row.mark(how(at));
      row.el.tabIndex = at === stop ? 0 : -1; // one stop of the tab key for all
    }
  }

  /** @type {(at: number | undefined) => number} */
  const placeOfRow = (at) => (at === undefined ? -1 : rows.order.indexOf(at));

  /**
   * The first row in sight that is none of these; none at the top, where what comes is seen.
   * @param {Set<number>} places
   */
  function anchorBeside(places) {
    if (!scroller.scrollTop) return undefined;
    const first = Math.floor(scroller.scrollTop / HEIGHT);
    return rows.order.slice(first).find((at) => !places.has(at));
  }

  function inSight() {
    const first = Math.floor(scroller.scrollTop / HEIGHT) - BESIDE;
    const last = first + Math.ceil(scroller.clientHeight / HEIGHT) + 2 * BESIDE;
    const n = rows.order.length;
    return [Math.max(0, Math.min(first, n - 1)), Math.max(0, Math.min(last, n))];
  }

  /** @param {MouseEvent} event */
  function clicked(event) {
    const at = placeOf(event.target);
    const button = event.target.closest("button");
    if (at < 0) return;
    act(event.target.matches("input") ? "tick" : /** @type {RowAct} */ (button?.dataset.act ?? "open"), at);
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (event.target.closest("thead") || event.ctrlKey || event.metaKey || event.altKey) return;
    const here = rows.order.indexOf(focused);
    const page = Math.max(1, Math.floor(scroller.clientHeight / HEIGHT) - 2);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) go(Math.max(0, Math.min(here + steps[event.key], rows.order.length - 1)));
    else if (event.key === "Enter" && focused >= 0) act("open", focused);
    else if (event.key === " " && focused >= 0) act("tick", focused);
    else if (rows.canMark && event.key in MARKS && focused >= 0) act(MARKS[event.key], focused);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Give the row at a place of the order the focus, below the heads.
   * @param {number} place
   */
  function go(place) {
    if (!rows.order.length) return;
    const head = scroller.querySelector("thead")?.offsetHeight ?? 0;
    const top = place * HEIGHT;
    const room = scroller.clientHeight - head - HEIGHT;
    scroller.scrollTop = Math.min(top, Math.max(scroller.scrollTop, top - room));
    refresh();
    focused = rows.order[place];
    mark(marked);
    focus();
  }

  /** @param {number} at */
  function look(at) {
    const found = rows.looks.get(at);
    if (found) made.get(at)?.look(found);
  }

  return {
    el,
    refresh,
    mark,
    /** What was read of one record. */
    look,
    /**
     * Rows change or come; the first in sight that was there before stays where it is.
     * @param {number[]} places
     * @param {() => void} change
     */
    renew(places, change) {
      const isFocused = hasFocus();
      const anchor = anchorBeside(new Set(places));
      const past = scroller.scrollTop - placeOfRow(anchor) * HEIGHT;
      change();
      forget(places);
      refresh();
      if (placeOfRow(anchor) >= 0) {
        scroller.scrollTop = placeOfRow(anchor) * HEIGHT + past;
        refresh();
      }
      if (isFocused) focus();
    },
    /** @param {number} at */
    rowOf: (at) => made.get(at),
    /**
     * Give a row the focus, if it is in sight.
     * @param {number} at
     */
    focusAt(at) {
      focused = at;
      mark(marked);
      focus();
    },
  };
}

function room() {
  return element("tr", { "aria-hidden": "true", class: "nbp-runs-room" });
}

/**
 * @param {HTMLElement} row
 * @param {number} n
 */
function stretch(row, n) {
  row.style.height = `${Math.max(0, n) * HEIGHT}px`;
  row.hidden = n <= 0;
}

/** @param {HTMLElement} node */
function placeOf(node) {
  return Number(node.closest?.("tr[data-at]")?.dataset.at ?? -1);
}
