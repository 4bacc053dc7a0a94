/** The runs of the folder, newest first: ticked ones are drawn over this one. */

import { arrange, element, listener, setAttribute, setHidden, setText } from "../../dom.js";
import { valueOr } from "../../maps.js";
import { createComparing } from "./comparing.js";
import { nearRuns, ownRow, searchRuns, typedPlace } from "./found_runs.js";
import { createRunRow } from "./run_row.js";

const MOST = 4; // dashes that can be told apart
/** @type {Record<string, number>} */
const ARROWS = { ArrowDown: 1, ArrowUp: -1 };
const HEADS = [
  ["", ""],
  ["name", ""],
  ["", ""],
  ["started", ""],
  ["steps", "nbp-run-number"],
  ["loss", "nbp-run-number"],
  ["differs in", ""],
];

/** @param {PanelParts} parts */
export function createRunList(parts) {
  const { state, selection, theme } = parts;
  const life = new AbortController(); // as long as the dialog is open
  const { signal } = life;
  const own = createRunRow({ own: true, signal });
  const search = element("input", {
    type: "search",
    autofocus: "",
    "aria-label": "Find a run, or type a path or a URL",
    placeholder: "Find: lr=1e-3, a path or a URL",
    "data-role": "find-run",
    spellcheck: "false",
  });
  const where = element("span", { class: "nbp-soft nbp-cut" });
  const heads = HEADS.map(([text, kind]) => element("span", { class: kind }, text));
  const list = element("div", { class: "nbp-run-rows" });
  const place = element("button", { class: "nbp-link nbp-cut", type: "button", "data-action": "open-run", hidden: "" });
  const said = element("p", { class: "nbp-soft nbp-runs-said", role: "status" });
  const comparing = createComparing({ ...parts, signal });
  const el = element(
    "div",
    { class: "nbp-sections nbp-runs" },
    element("header", { role: "none" }, element("h3", {}, "Runs"), where, search),
    element(
      "section",
      { role: "group", "aria-label": "Runs" },
      element("div", { class: "nbp-run-row nbp-run-heads nbp-soft" }, ...heads),
      own.el,
      list,
      place,
      said,
    ),
    comparing.el,
  );
  /** @type {Map<string, ReturnType<typeof createRunRow>>} */
  const rows = new Map(); // run -> its row
  let refusal = "";

  const listen = listener(signal);
  listen(search, "input", refresh);
  listen(search, "keydown", (event) => {
    if (event.key === "Enter" && !place.hidden) add(place.dataset.run ?? "");
  });
  listen(place, "click", () => add(place.dataset.run ?? ""));
  listen(el, "keydown", moved);

  /** @param {string} run */
  function add(run) {
    search.value = "";
    tick(run, true);
  }

  /**
   * @param {string} run
   * @param {boolean} on
   */
  function tick(run, on) {
    const { others, ratio_to: to } = state.selection;
    const rest = others.filter((one) => one !== run);
    refusal = on && rest.length >= MOST ? `At most ${MOST} other runs: remove one first` : "";
    if (refusal) return refresh();
    const now = on ? [...rest, run] : rest;
    return selection.change({ others: now, ratio_to: now.includes(to) ? to : "" });
  }

  function refresh() {
    if (signal.aborted) return;
    const { folder, runs } = state.parts.compare;
    const query = search.value.trim();
    const { soft, brand } = theme.read();
    setText(where, `${folder ? `in ${folder}/; ` : ""}ticked ones are drawn over this one`);
    own.show(ownRow(state), true, brand);
    const shown = searchRuns(runs, query);
    const { others } = state.selection;
    for (const row of shown) rowOf(row.run).show(row, others.includes(row.run), soft);
    arrange(list, shown.map((row) => rowOf(row.run).el));
    const typed = typedPlace(query, runs);
    setHidden(place, !typed);
    setText(place, `Open ${typed}`);
    setAttribute(place, "data-run", typed);
    setText(said, refusal || saying(query, shown, typed));
    said.classList.toggle("nbp-bad", Boolean(refusal));
    comparing.refresh();
  }

  /** @param {string} run */
  function rowOf(run) {
    return valueOr(rows, run, () => createRunRow({ own: false, ticked: (on) => tick(run, on), signal }));
  }

  /**
   * @param {string} query
   * @param {RunRow[]} shown
   * @param {string} typed
   */
  function saying(query, shown, typed) {
    const { folder, listed, problem, n_left_out: rest, runs } = state.parts.compare;
    if (problem) return problem;
    if (query) return shown.length || typed ? "" : nearRuns(query, runs);
    if (!folder) return "The runs in this folder are not listed: type a path or a URL";
    if (!listed) return `Reading ${folder}/ …`;
    if (!runs.length) return `No other run in ${folder}/`;
    return rest ? `${rest} older ones are not listed: type the path of one` : "";
  }

  /**
   * Up and down through the ticks.
   * @param {KeyboardEvent} event
   */
  function moved(event) {
    const by = ARROWS[event.key];
    const ticks = [search, ...list.querySelectorAll("input:not(:disabled)")];
    const at = ticks.findIndex((tick) => tick.matches(":focus"));
    if (!by || at < 0) return;
    ticks[Math.min(Math.max(at + by, 0), ticks.length - 1)].focus();
    event.preventDefault();
    event.stopPropagation();
  }

  return { el, refresh, close: () => life.abort() };
}
