/** The rows of the tree that are in sight, on a few elements which are filled for them. */

import { penOf, element, setAttribute, setHidden } from "../dom.js";
import { badgesOf } from "../parts/alerts/badges.js";
import { flagsOf } from "../parts/breaks/flags.js";
import { emptyRow, fillRow, problemTexts } from "./row.js";

export const ROW_PX = 22;
const SPARE_ROWS = 6;
const BESIDE_NAME_PX = 45; // paddings, fold and dot

/**
 * What the tree shows: rows in order, whether they are search results, where the keyboard stands.
 * @typedef {{ shown: TreeRow[], flat: boolean, current: string | null }} TreeContent
 */
/** @typedef {{ node: ReturnType<typeof emptyRow>, place: number, row: TreeRow | null }} Slot */
/**
 * @typedef {Pick<PanelParts, "state" | "theme" | "signal"> & {
 *   scroller: HTMLElement,
 *   rows: HTMLElement,
 *   content: () => TreeContent,
 * }} RowsParts
 */

/**
 * Draw the rows of `content()` in `rows`, as far as `scroller` shows them; `request()` draws them anew.
 * @param {RowsParts} parts
 */
export function createRowsInSight({ state, theme, scroller, rows, content, signal }) {
  const ids = `nbp-row-${Math.random().toString(36).slice(2)}`; // two views, no id twice
  const paper = penOf(element("canvas")); // to measure a letter with
  /** @type {Slot[]} */
  const slots = []; // in the order of the rows, the first one at place `top`
  let top = 0;
  let room = { width: 0, letter: 0 };
  let isStale = true; // whether rows may look different, and not only stand elsewhere
  let pending = 0;
  let problems = problemTexts(state.status);
  let badges = badgesOf(state.alerts, state.model.byPath);
  let flags = flagsOf(state.parts.breaks.rows, state.model.byPath);

  const move = () => {
    if (!pending && !signal.aborted) pending = requestAnimationFrame(draw);
  };
  const request = () => {
    isStale = true;
    move();
  };
  const observer = new ResizeObserver(request);
  observer.observe(scroller);
  signal.addEventListener("abort", () => {
    cancelAnimationFrame(pending);
    observer.disconnect();
  });
  scroller.addEventListener("scroll", move, { signal });
  follow(["model", "alerts"], () => (badges = badgesOf(state.alerts, state.model.byPath)));
  follow(["model", "breaks"], () => (flags = flagsOf(state.parts.breaks.rows, state.model.byPath)));
  follow(["status"], () => (problems = problemTexts(state.status)));
  follow(["marked", "picture", "theme"], () => {});

  /**
   * @param {string[]} topics
   * @param {() => void} update
   */
  function follow(topics, update) {
    for (const topic of topics) {
      state.on(topic, () => {
        update();
        request();
      });
    }
  }

  function draw() {
    pending = 0;
    const { shown, flat, current } = content();
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW_PX) - SPARE_ROWS);
    const last = Math.min(shown.length, first + Math.ceil(scroller.clientHeight / ROW_PX) + 2 * SPARE_ROWS);
    if (isStale) room = nameRoom(scroller, paper); // measured before anything is moved
    while (slots.length < last - first) slots.push(newSlot());
    turn(first);
    const { brand } = theme.read();
    const { folded } = state;
    const look = { state, folded, flat, room, current, problems, badges, flags, brand };
    slots.forEach((slot, k) => {
      const row = first + k < last ? shown[first + k] : null;
      setHidden(slot.node, !row);
      if (!row || (!isStale && slot.place === first + k && slot.row === row)) return;
      [slot.place, slot.row] = [first + k, row];
      slot.node.style.transform = `translateY(${slot.place * ROW_PX}px)`;
      fillRow(slot.node, row, look);
    });
    isStale = false;
    const at = current === null ? -1 : shown.findIndex((row) => row.path === current);
    setAttribute(scroller, "aria-activedescendant", at >= first && at < last ? slots[at - first].node.id : null);
  }

  /** @returns {Slot} */
  function newSlot() {
    return { node: rows.appendChild(emptyRow(`${ids}-${slots.length}`)), place: -1, row: null };
  }

  /**
   * What is scrolled out at one end comes in at the other: the rows between are left as they are.
   * @param {number} first
   */
  function turn(first) {
    const by = first - top;
    top = first;
    if (!by || Math.abs(by) >= slots.length) return;
    const moved = by > 0 ? slots.splice(0, by) : slots.splice(by);
    if (by > 0) slots.push(...moved);
    else slots.unshift(...moved);
    const nodes = moved.map(({ node }) => node);
    if (by > 0) rows.append(...nodes);
    else rows.prepend(...nodes);
  }

  return { request };
}

/**
 * { width, letter } of a name at the left edge, in pixels.
 * @param {HTMLElement} scroller
 * @param {CanvasRenderingContext2D} paper
 */
function nameRoom(scroller, paper) {
  const { fontSize, fontFamily } = getComputedStyle(scroller);
  paper.font = `${fontSize} ${fontFamily}`;
  return { width: scroller.clientWidth - BESIDE_NAME_PX, letter: paper.measureText("m").width };
}
