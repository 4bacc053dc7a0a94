/** State of one view of the table: available columns, order, filter, and known facts of runs. */

import { valueAt } from "../../js/maps.js";
import { nextSort, orderedBy } from "./order.js";
import { isWithin } from "./picture/axes.js";

/**
 * `order` is the rows in sight of the filter, as they are sorted; `shown` the names of columns. Lists
 * are copies: the table as it was sent is also that of views which come later.
 * @param {RunsTable} table
 */
export function createRows(table) {
  const columns = new Map(table.columns.map((one) => [one.name, copyOf(one)]));
  const rows = {
    runs: [...table.runs],
    labels: [...table.labels],
    names: [...table.names],
    columns,
    picked: table.shown,
    standard: table.shown, // as long as it is what is picked, nobody has picked anything else
    sorted: { name: "", down: false },
    /** @type {Set<number> | null} */
    wanted: null, // the places that a condition is true of; null for all
    /** @type {string[]} */
    words: [],
    /** @type {Map<string, ColumnRange>} */
    ranges: new Map(), // column -> its values that are wanted
    /** @type {PictureChoice} */
    picture: { kind: "", x: "", y: "", colour: "", by: "" },
    came: table.runs.map((_, at) => at), // as nobody has sorted them: the newest first
    /** @type {number[]} */
    order: [],
    canMark: false,
    /** @type {Map<number, RunMarks>} */
    marks: new Map(table.marks.map((one) => [one.at, one])),
    /**
     * @param {number} at
     * @returns {RunMarks}
     */
    marksOf: (at) => rows.marks.get(at) ?? { at, name: "", tags: [], note: "" },
    /** @type {Map<number, LookedAt>} */
    looks: new Map(), // place -> line, alerts
    get shown() {
      return rows.picked.filter((name) => columns.has(name));
    },
    /** @param {string} name */
    sort(name) {
      rows.sorted = nextSort(rows.sorted, name);
      rows.arrange();
    },
    /**
     * Of what a text means: `{ rows }` or `{ words }`.
     * @param {{ rows?: number[] | null, words?: string }} wanted
     */
    filter({ rows: wanted = null, words = "" }) {
      rows.wanted = wanted && new Set(wanted);
      rows.words = words.toLowerCase().split(/\s+/).filter(Boolean);
      rows.arrange();
    },
    arrange() {
      const found = rows.came.filter((at) => (rows.wanted?.has(at) ?? true) && hasWords(at) && isInRanges(at));
      const keys = rows.sorted.name === "run" ? rows.labels : columns.get(rows.sorted.name)?.keys;
      rows.order = keys ? orderedBy(found, keys, rows.sorted.down) : found;
    },
    /**
     * Columns that were asked for.
     * @param {TableColumn[]} given
     */
    add(given) {
      for (const one of given) columns.set(one.name, copyOf(one));
    },
    /**
     * Rows that are others now, and those that have come, behind the others by their places.
     * @param {RowsMessage} message
     */
    renew({ at: places, runs, labels, columns: given, names, marks }) {
      for (const one of marks) rows.marks.set(one.at, one);
      rows.names.push(...names.filter((name) => !rows.names.includes(name)));
      places.forEach((at, k) => {
        if (at > rows.runs.length) return; // what comes between them is still to be told
        if (at === rows.runs.length) comes(at);
        [rows.runs[at], rows.labels[at]] = [runs[k], labels[k]];
        for (const one of given) setCell(columns.get(one.name), at, one, k);
      });
      rows.arrange();
    },
  };

  /** @param {number} at */
  function comes(at) {
    rows.came.unshift(at);
    for (const { keys, texts } of columns.values()) [keys[at], texts[at]] = [keys[at] ?? null, texts[at] ?? ""];
  }

  /** @param {number} at */
  function isInRanges(at) {
    return [...rows.ranges].every(([name, range]) => {
      const column = columns.get(name);
      return !column || isWithin(range, column.keys[at] ?? null, column.texts[at] ?? "");
    });
  }

  /** @param {number} at */
  function hasWords(at) {
    if (!rows.words.length) return true;
    const told = [rows.labels[at], rows.runs[at], ...rows.shown.map((name) => valueAt(columns, name).texts[at])];
    const text = told.join("\n").toLowerCase();
    return rows.words.every((word) => text.includes(word));
  }

  rows.arrange();
  return rows;
}

/**
 * @param {TableColumn} column
 * @returns {TableColumn}
 */
function copyOf(column) {
  return { ...column, keys: [...column.keys], texts: [...column.texts] };
}

/**
 * One cell; of a column that this view does not have, none.
 * @param {TableColumn | undefined} column
 * @param {number} at
 * @param {TableColumn} given
 * @param {number} k
 */
function setCell(column, at, given, k) {
  if (!column) return;
  [column.keys[at], column.texts[at]] = [given.keys[k], given.texts[k]];
  column.numeric &&= given.numeric;
}
