/** A table of runs: heads sort, the box filters, a click on a row opens its run, a tick draws it beside. */

import { createDialogs } from "../../js/dialogs/dialog.js";
import { element, setText } from "../../js/dom.js";
import { valueAt } from "../../js/maps.js";
import { createTheme } from "../../js/plots/theme.js";
import { createBody } from "./body.js";
import { createChoosing } from "./choosing.js";
import { createFilter } from "./filter_box.js";
import { createHead, widthOf } from "./head.js";
import { createMarking } from "./marking.js";
import { createPicking } from "./picking.js";
import { createRunPicture } from "./picture/picture.js";
import { createRanges } from "./picture/ranges.js";
import { createReading } from "./reading.js";
import { csvOf, saveText } from "./csv.js";
import { createRows } from "./rows_state.js";
import { createTip } from "./tip.js";

/** @typedef {Comm & ChosenRuns & { get(name: "table"): RunsTable, get(name: "kept"): KeptTable }} TableModel */

const HINT = "a click on a head sorts, on a row opens the run; a tick draws it over the open one";
let count = 0; // views are told apart by it, and by when they were made

/** @param {{ model: TableModel, el: HTMLElement }} widget */
function render({ model, el }) {
  const life = new AbortController();
  const { signal } = life;
  const view = `${Date.now()}-${(count += 1)}`;
  const rows = createRows(model.get("table"));
  rows.canMark = model.get("can_mark");
  let failure = ""; // of the last mark
  let unasked = ""; // why it is not known which runs there are now
  /** @type {(type: string, fields: object) => void} */
  const send = (type, fields) => model.send({ v: 1, type, view, ...fields });

  const root = element("div", { class: "nbp-runs-table" });
  const dialogs = createDialogs({ root, signal });
  const groups = element("colgroup");
  const table = element("table", { role: "grid", "aria-label": "Runs", "aria-multiselectable": "true" }, groups);
  const scroller = element("div", { class: "nbp-runs-rows", tabindex: "-1" }, table);
  const foot = element("p", { class: "nbp-runs-foot", role: "status" });
  const choosing = createChoosing({ model, told });
  const reading = createReading({ el: scroller, send, isKnown: (at) => rows.looks.has(at), signal });
  const head = createHead({ rows, sort });
  /** @type {(at: number, field: string, text: string) => void} */
  const mark = (at, field, text) => send("mark", { runs: [at], names: [field], text });
  const marking = createMarking({ rows, dialogs, body: () => body, send: mark, failed, signal });
  /** @type {(kind: "open" | "tick" | "star" | "edit", at: number) => void} */
  const act = (kind, at) => (kind === "star" || kind === "edit" ? marking[kind](at) : choosing[kind](rows.runs[at]));
  const body = createBody({ rows, scroller, act, seen: reading.seen, signal });
  const tip = createTip({ root, rows, body, signal });
  const filter = createFilter({ rows, ask: (text) => send("filter", { text }), arrange: arranged, keep, signal });
  const picking = createPicking({ rows, dialogs, pick, signal });
  const theme = createTheme(root, { emit: themed }, signal);
  const ranges = createRanges({ rows, clear: (name) => arranged(() => take(name)), signal });
  const isOpen = (/** @type {number} */ at) => Object.values(choosing.stateOf(rows.runs[at])).some(Boolean);
  const open = (/** @type {number} */ at) => act("open", at);
  const picture = createRunPicture({ rows, theme, changed: arranged, open, isOpen, keep, ask: groupsOf, signal });
  const seen = { class: "nbp-runs-columns", title: "The rows and columns in sight" };
  const csv = element("button", { type: "button", ...seen }, "CSV ↓");
  csv.addEventListener("click", () => saveText("runs.csv", "text/csv", csvOf(rows)), { signal });

  table.append(head.el, body.el);
  const bar = element("div", { class: "nbp-runs-bar" }, filter.el, picture.toggle, picking.el, csv);
  root.append(bar, picture.el, ranges.el, scroller, foot, tip.el); // a range that comes moves no picture
  el.append(root);

  /** @param {string} name */
  function sort(name) {
    arranged(() => rows.sort(name));
    keep();
  }

  /**
   * Take the range of a column away.
   * @param {string} name
   */
  function take(name) {
    rows.ranges.delete(name);
    rows.arrange();
  }

  /** @param {string} by */
  function groupsOf(by) {
    send("groups", { names: [by], runs: rows.order });
  }

  function themed() {
    body.refresh({ anew: true });
    picture.refresh();
  }

  /** What is arranged is there again when the table is made anew. */
  function keep() {
    const columns = rows.picked === rows.standard ? null : rows.picked;
    model.set("kept", { columns, sorted: rows.sorted, filter: filter.text(), picture: { ...rows.picture } });
    model.save_changes();
  }

  /** As it was kept, as far as there still are such columns. */
  function restore() {
    const { columns = null, sorted, filter: text = "", picture: chosen } = model.get("kept");
    if (sorted) rows.sorted = { ...rows.sorted, ...sorted };
    if (chosen) Object.assign(rows.picture, chosen);
    if (columns) show(columns.filter((name) => rows.names.includes(name)));
    if (text) filter.restore(text);
    rows.arrange();
  }

  /** @param {string[]} names */
  function pick(names) {
    show(names);
    keep();
  }

  /** @param {string[]} names */
  function show(names) {
    rows.picked = names;
    const missing = names.filter((name) => !rows.columns.has(name));
    if (missing.length) send("columns", { names: missing });
    rearranged();
  }

  /**
   * Have other rows in sight, or in another order: from the top, or `stays` where it is.
   * @param {() => void} change
   * @param {{ stays?: boolean, places?: number[] }} [how]
   */
  function arranged(change, { stays = false, places = [] } = {}) {
    if (stays) {
      body.renew(places, change);
    } else {
      tip.hide();
      change();
      scroller.scrollTop = 0;
      body.refresh();
    }
    head.refresh();
    filter.refresh();
    ranges.refresh();
    picture.refresh();
    table.setAttribute("aria-rowcount", String(rows.order.length + 1));
  }

  /**
   * Show the columns in which runs differ now, unless others were picked.
   * @param {string[]} names
   */
  function showStandard(names) {
    const isPicked = rows.picked !== rows.standard;
    if (names.join("\n") === rows.standard.join("\n")) return;
    rows.standard = names;
    if (!isPicked) show(names);
  }

  /** Other columns are. */
  function rearranged() {
    const widths = rows.shown.map((name) => widthOf(valueAt(rows.columns, name).texts, spanOf(name)));
    const named = widthOf(rows.labels, [10, 26]);
    const beside = rows.canMark ? 118 : 66; // pixels: tick, marks and badge
    // It stays in sight while the others scroll, with some letters of the name on a phone, too.
    const own = `max(${beside + 40}px, min(calc(${named}ch + ${beside}px), 40cqw))`;
    const sized = [own, "112px", ...widths.map((n) => `calc(${n}ch + 22px)`)];
    groups.replaceChildren(...sized.map((width) => element("col", { style: `width: ${width}` })));
    table.style.minWidth = `calc(${sized.join(" + ")})`;
    head.refresh();
    body.refresh({ anew: true });
    picture.refresh();
  }

  function told() {
    picture.refresh();
    body.mark((at) => choosing.stateOf(rows.runs[at]));
    const problem = choosing.problem || failure || model.get("said") || unasked;
    setText(foot, problem || choosing.words(HINT));
    foot.classList.toggle("nbp-bad", Boolean(problem));
  }

  /** @param {string} problem */
  function failed(problem) {
    failure = problem;
    told();
  }

  /** @type {Record<string, (message: any) => unknown>} */
  const answers = {
    marked: (message) => message.view === view && marking.answered(message),
    groups: (message) => message.view === view && picture.grouped(message),
    filtered: (message) => message.view === view && filter.answered(message),
    /** @param {{ columns: TableColumn[] }} message */
    columns(message) {
      rows.add(message.columns);
      rearranged();
    },
    /** @param {RowsMessage} message */
    rows(message) {
      arranged(() => rows.renew(message), { stays: true, places: message.at });
      showStandard(message.shown);
      filter.again();
    },
    /** @param {LookedAt & { at: number }} message */
    line(message) {
      rows.looks.set(message.at, message);
      body.look(message.at);
    },
    /** @param {{ problem: string, again_s: number }} message */
    looked(message) {
      unasked = message.problem;
      told();
      reading.looked(message.again_s);
    },
  };
  /** @type {Record<string, (message: any) => void>} */
  const heard = {
    "msg:custom": (message) => answers[message.type]?.(message),
    "change:chosen": told,
    "change:others": told,
    "change:said": told,
  };
  for (const [what, run] of Object.entries(heard)) model.on(what, run);
  restore();
  rearranged();
  arranged(() => {});
  told();
  send("hello", {});
  return () => {
    life.abort();
    for (const [what, run] of Object.entries(heard)) model.off(what, run);
  };
}

/**
 * Characters that a head and its cells need at least, and get at most.
 * @param {string} name
 * @returns {[number, number]}
 */
function spanOf(name) {
  const parts = name.split(".");
  const last = parts.pop() ?? "";
  return [Math.min(16, Math.max(last.length + 2, parts.join(".").length)), 24];
}

export default { render };
