/** The module tree: only the rows in sight exist, so ten thousand modules scroll like ten. */

import { createSilentProbes } from "../controls/silent_probes.js";
import { emphasize } from "../charts/emphasis.js";
import { element, listener, setHidden, setText } from "../dom.js";
import { grouped } from "../format.js";
import { searchModules, unfoldedRows } from "./modules.js";
import { nothingFound } from "./near_names.js";
import { repeatedBlocks } from "./repeats.js";
import { createRowsInSight, ROW_PX } from "./rows_in_sight.js";

/** @param {Pick<PanelParts, "state" | "theme" | "signal"> & { attached: { el: HTMLElement } }} parts */
export function createTree({ state, theme, attached, signal }) {
  const search = element("input", {
    type: "search",
    class: "nbp-search",
    placeholder: "Find: name, *.glob or class",
    "aria-label": "Find modules by name, glob or class",
    "data-role": "search",
    spellcheck: "false",
  });
  const found = element("span", { class: "nbp-found" });
  const nothing = element("p", { class: "nbp-nothing nbp-soft", role: "status", hidden: "" });
  const rows = element("div", { class: "nbp-rows" });
  const scroller = element(
    "div",
    { class: "nbp-tree", tabindex: "0", role: "tree", "aria-label": "Modules" },
    rows,
  );
  scroller.setAttribute("aria-multiselectable", "true");
  const el = element(
    "div",
    { class: "nbp-modules" },
    element("div", { class: "nbp-find" }, search, found, attached.el),
    createSilentProbes({ state, signal }).el,
    nothing,
    scroller,
  );

  const { folded } = state;
  /** @type {Set<string>} */
  const met = new Set(); // paths of modules that have been folded, or not
  /** @type {TreeRow[]} */
  let shown = []; // rows in order, folded or searched
  /** @type {string | null} */
  let current = null; // path the keyboard stands on; ranges start at `anchor`
  /** @type {string | null} */
  let anchor = null;
  /** @type {number | null} */
  let placeBefore = null; // where the tree stood before it was searched
  const listen = listener(signal);
  const content = () => ({ shown, flat: search.value.trim() !== "", current });
  const { request } = createRowsInSight({ state, theme, scroller, rows, content, signal });
  listen(search, "input", () => {
    searched();
    if (search.value.trim()) mark(shown.map((row) => row.path));
  });
  listen(search, "keydown", (event) => event.key === "Escape" && showAll());
  listen(rows, "click", clicked);
  listen(scroller, "keydown", pressed);
  listen(rows, "pointerover", ({ target }) => {
    const module = target.closest(".nbp-row")?.dataset.module;
    emphasize(state, module === undefined ? null : { module, quantity: null });
  });
  listen(rows, "pointerleave", () => emphasize(state, null));
  state.on("emphasis", () => {
    for (const row of rows.children) row.classList.toggle("nbp-pointed", row.dataset.module === state.emphasis?.module);
  });
  state.on("model", foldRepeats);
  state.on("model", list);
  state.on("reveal", reveal);

  /** Once for each module, so that one that was unfolded by hand stays so. */
  function foldRepeats() {
    for (const path of repeatedBlocks(state.model.modules)) if (!met.has(path)) folded.add(path);
    for (const { path } of state.model.modules) met.add(path);
  }

  function list() {
    const query = search.value.trim();
    shown = query
      ? searchModules(state.model.modules, query)
      : unfoldedRows(state.model.modules, folded);
    setText(found, query && shown.length ? `${grouped(shown.length)} found` : "");
    const missed = query !== "" && !shown.length;
    setText(nothing, missed ? nothingFound(state.model.modules, query) : "");
    setHidden(nothing, !missed);
    rows.style.height = `${shown.length * ROW_PX}px`;
    request();
  }

  /** What was found begins at the top; without a search the tree stands again where it stood. */
  function searched() {
    const place = search.value.trim() ? 0 : (placeBefore ?? scroller.scrollTop);
    if (!search.value.trim()) placeBefore = null;
    else placeBefore ??= scroller.scrollTop;
    list();
    scroller.scrollTop = place;
  }

  /** @param {Iterable<string>} paths */
  function mark(paths) {
    state.marked = new Set(paths);
    state.emit("marked");
  }

  /** @param {MouseEvent} event */
  function clicked(event) {
    const node = event.target.closest(".nbp-row");
    if (!node) return;
    const path = node.dataset.module ?? "";
    if (event.target.classList.contains("nbp-fold") && event.target.textContent)
      return toggle(path);
    choose(path, event.shiftKey, event.ctrlKey || event.metaKey);
  }

  /**
   * Mark one row, a range from the anchor, or add and remove one.
   * @param {string} path
   * @param {boolean} range
   * @param {boolean} toggled
   */
  function choose(path, range, toggled) {
    current = path;
    if (range && anchor !== null) {
      const ends = [anchor, path].map((end) => shown.findIndex((row) => row.path === end));
      const [from, to] = [Math.min(...ends), Math.max(...ends)];
      return mark(shown.slice(Math.max(0, from), to + 1).map((row) => row.path));
    }
    anchor = path;
    if (!toggled) return mark([path]);
    const marked = new Set(state.marked);
    if (!marked.delete(path)) marked.add(path);
    return mark(marked);
  }

  /** @param {string} path */
  function toggle(path) {
    if (!folded.delete(path)) folded.add(path);
    list();
    state.emit("folded");
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const at = shown.findIndex((row) => row.path === current);
    const row = shown[at];
    const page = Math.floor(scroller.clientHeight / ROW_PX);
    /** @type {Record<string, number>} */
    const moves = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: Infinity,
    };
    if (event.key in moves && shown.length) {
      const next = shown[Math.min(Math.max(moves[event.key], 0), shown.length - 1)];
      choose(next.path, event.shiftKey, false);
      keepInSight(next.path);
    } else if (row && event.key === "ArrowLeft" && row.children.length && !folded.has(row.path))
      toggle(row.path);
    else if (row && event.key === "ArrowRight" && folded.has(row.path)) toggle(row.path);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} path */
  function keepInSight(path) {
    const top = shown.findIndex((row) => row.path === path) * ROW_PX;
    const { scrollTop, clientHeight } = scroller;
    if (top < scrollTop) scroller.scrollTop = top;
    else if (top + ROW_PX > scrollTop + clientHeight)
      scroller.scrollTop = top + ROW_PX - clientHeight;
    request();
  }

  /** End the search; what it marked stays marked. */
  function showAll() {
    search.value = "";
    searched();
  }

  /** Unfold the way to the marked modules and scroll to the first. */
  function reveal() {
    const [path] = state.marked;
    if (path === undefined) return;
    search.value = "";
    placeBefore = null;
    for (const marked of state.marked) {
      for (let row = state.model.byPath.get(marked)?.above; row; row = row.above) folded.delete(row.path);
    }
    current = anchor = path;
    list();
    keepInSight(path);
  }

  return { el, search, scroller };
}
