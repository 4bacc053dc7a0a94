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
  /** @type {Array<ReturnType<typeof emptyRow>>} */
  const pool = [];
  let pending = 0;
  let problems = problemTexts(state.status);
  let badges = badgesOf(state.alerts, state.model.byPath);
  let flags = flagsOf(state.parts.breaks.rows, state.model.byPath);

  const request = () => {
    if (!pending && !signal.aborted) pending = requestAnimationFrame(draw);
  };
  const observer = new ResizeObserver(request);
  observer.observe(scroller);
  signal.addEventListener("abort", () => {
    cancelAnimationFrame(pending);
    observer.disconnect();
  });
  scroller.addEventListener("scroll", request, { signal });
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
    while (pool.length < last - first) pool.push(rows.appendChild(emptyRow(`${ids}-${pool.length}`)));
    const { brand } = theme.read();
    const { folded } = state;
    const look = { state, folded, flat, room: nameRoom(scroller, paper), current, problems, badges, flags, brand };
    pool.forEach((node, k) => {
      setHidden(node, first + k >= last);
      if (first + k >= last) return;
      node.style.transform = `translateY(${(first + k) * ROW_PX}px)`;
      fillRow(node, shown[first + k], look);
    });
    const at = shown.findIndex((row) => row.path === current);
    setAttribute(scroller, "aria-activedescendant", at >= first && at < last ? pool[at - first].id : null);
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
