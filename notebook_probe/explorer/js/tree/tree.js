/** The module tree: only the rows in sight exist, so ten thousand modules scroll like ten. */

import { element, setAttribute, setHidden, setText } from "../dom.js";
import { grouped } from "../format.js";
import { searchModules, unfoldedRows } from "./modules.js";
import { emptyRow, fillRow, problemTexts } from "./row.js";

const ROW_PX = 22;
const SPARE_ROWS = 6;

export function createTree({ state, signal }) {
  const search = element("input", {
    type: "search",
    class: "nbp-search",
    placeholder: "Find: name, *.glob or class",
    "aria-label": "Find modules by name, glob or class",
    "data-role": "search",
    spellcheck: "false",
  });
  const found = element("span", { class: "nbp-found", role: "status" });
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
    element("div", { class: "nbp-find" }, search, found),
    scroller,
  );

  const folded = new Set();
  const ids = `nbp-row-${Math.random().toString(36).slice(2)}`; // two views, no id twice
  const pool = [];
  let shown = []; // rows in order, folded or searched
  let current = null; // path the keyboard stands on; ranges start at `anchor`
  let anchor = null;
  let pending = 0;
  let problems = problemTexts(state.status);

  const listen = (node, type, run) => node.addEventListener(type, run, { signal });
  const request = () => {
    if (!pending && !signal.aborted) pending = requestAnimationFrame(draw);
  };
  signal.addEventListener("abort", () => cancelAnimationFrame(pending));
  const observer = new ResizeObserver(request);
  observer.observe(scroller);
  signal.addEventListener("abort", () => observer.disconnect());
  listen(scroller, "scroll", request);
  listen(search, "input", () => {
    list();
    if (search.value.trim()) mark(shown.map((row) => row.path));
  });
  listen(search, "keydown", (event) => event.key === "Escape" && showAll());
  listen(rows, "click", clicked);
  listen(scroller, "keydown", pressed);
  state.on("model", list);
  state.on("status", () => {
    problems = problemTexts(state.status);
    request();
  });
  for (const topic of ["marked", "picture", "theme"]) state.on(topic, request);
  state.on("reveal", reveal);

  function list() {
    const query = search.value.trim();
    shown = query
      ? searchModules(state.model.modules, query)
      : unfoldedRows(state.model.modules, folded);
    setText(found, query ? `${grouped(shown.length)} found` : "");
    rows.style.height = `${shown.length * ROW_PX}px`;
    request();
  }

  function draw() {
    pending = 0;
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW_PX) - SPARE_ROWS);
    const last = Math.min(
      shown.length,
      first + Math.ceil(scroller.clientHeight / ROW_PX) + 2 * SPARE_ROWS,
    );
    while (pool.length < last - first)
      pool.push(rows.appendChild(emptyRow(`${ids}-${pool.length}`)));
    const look = { state, folded, flat: search.value.trim() !== "", current, problems };
    pool.forEach((node, k) => {
      setHidden(node, first + k >= last);
      if (first + k >= last) return;
      node.style.transform = `translateY(${(first + k) * ROW_PX}px)`;
      fillRow(node, shown[first + k], look);
    });
    const at = shown.findIndex((row) => row.path === current);
    const active = at >= first && at < last ? pool[at - first].id : null;
    setAttribute(scroller, "aria-activedescendant", active);
  }

  function mark(paths) {
    state.marked = new Set(paths);
    state.emit("marked");
  }

  function clicked(event) {
    const node = event.target.closest(".nbp-row");
    if (!node) return;
    const path = node.getAttribute("data-module");
    if (event.target.classList.contains("nbp-fold") && event.target.textContent)
      return toggle(path);
    choose(path, event.shiftKey, event.ctrlKey || event.metaKey);
  }

  /** Mark one row, a range from the anchor, or add and remove one. */
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

  function toggle(path) {
    if (!folded.delete(path)) folded.add(path);
    list();
  }

  function pressed(event) {
    const at = shown.findIndex((row) => row.path === current);
    const row = shown[at];
    const page = Math.floor(scroller.clientHeight / ROW_PX);
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
    list();
  }

  /** Unfold the way to the marked module and scroll there. */
  function reveal() {
    const [path] = state.marked;
    search.value = "";
    for (let row = state.model.byPath.get(path); row; row = row.above) folded.delete(row.path);
    current = anchor = path;
    list();
    keepInSight(path);
  }

  return { el, search, scroller };
}
