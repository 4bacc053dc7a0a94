/** A table of runs: heads sort, the box filters, a click on a row opens its run, a tick draws it beside. */

import { createDialogs } from "../../js/dialogs/dialog.js";
import { element, setText } from "../../js/dom.js";
import { valueAt } from "../../js/maps.js";
import { createTheme } from "../../js/plots/theme.js";
import { createBody } from "./body.js";
import { createChoosing } from "./choosing.js";
import { createFilter } from "./filter_box.js";
import { createHead, widthOf } from "./head.js";
import { createPicking } from "./picking.js";
import { createReading } from "./reading.js";
import { createRows } from "./rows_state.js";
import { createTip } from "./tip.js";

/** @typedef {Comm & ChosenRuns & { get(name: "table"): RunsTable }} TableModel */

const HINT = "a click on a head sorts, on a row opens the run; a tick draws it beside the open one";
let count = 0; // views are told apart by it, and by when they were made

/** @param {{ model: TableModel, el: HTMLElement }} widget */
function render({ model, el }) {
  const life = new AbortController();
  const { signal } = life;
  const view = `${Date.now()}-${(count += 1)}`;
  const rows = createRows(model.get("table"));
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
  /** @type {(kind: "open" | "tick", at: number) => void} */
  const act = (kind, at) => choosing[kind](rows.runs[at]);
  const body = createBody({ rows, scroller, act, seen: reading.seen, signal });
  const tip = createTip({ root, rows, body, signal });
  const filter = createFilter({ rows, ask: (text) => send("filter", { text }), arrange: arranged, signal });
  const picking = createPicking({ rows, dialogs, pick, signal });
  createTheme(root, { emit: () => body.refresh({ anew: true }) }, signal);

  table.append(head.el, body.el);
  root.append(element("div", { class: "nbp-runs-bar" }, filter.el, picking.el), scroller, foot, tip.el);
  el.append(root);

  /** @param {string} name */
  function sort(name) {
    arranged(() => rows.sort(name));
  }

  /** @param {string[]} names */
  function pick(names) {
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
    if (!isPicked) pick(names);
  }

  /** Other columns are. */
  function rearranged() {
    const widths = rows.shown.map((name) => widthOf(valueAt(rows.columns, name).texts, spanOf(name)));
    const named = widthOf(rows.labels, [10, 26]);
    const own = `min(calc(${named}ch + 66px), 36cqw)`; // it stays in sight while the others scroll
    const sized = [own, "112px", ...widths.map((n) => `calc(${n}ch + 22px)`)];
    groups.replaceChildren(...sized.map((width) => element("col", { style: `width: ${width}` })));
    table.style.minWidth = `calc(${sized.join(" + ")})`;
    head.refresh();
    body.refresh({ anew: true });
  }

  function told() {
    body.mark((at) => choosing.stateOf(rows.runs[at]));
    const problem = choosing.problem || model.get("said") || unasked;
    setText(foot, problem || choosing.words(HINT));
    foot.classList.toggle("nbp-bad", Boolean(problem));
  }

  /** @type {Record<string, (message: any) => unknown>} */
  const answers = {
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
