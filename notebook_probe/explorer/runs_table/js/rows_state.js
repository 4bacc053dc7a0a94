/** What one view shows of the table: columns that are there, order, filter, and what is known of runs. */

import { nextSort, orderedBy } from "./order.js";

/** `order` is the rows in sight of the filter, as they are sorted; `shown` the names of columns. */
export function createRows(table) {
  const columns = new Map(table.columns.map((one) => [one.name, one]));
  const everyRow = table.runs.map((_, at) => at);
  const rows = {
    ...table,
    columns,
    picked: [...table.shown],
    standard: table.shown,
    sorted: { name: "", down: false },
    wanted: null, // the places that a condition is true of; null for all
    words: [],
    order: everyRow,
    looks: new Map(), // place -> line, alerts
    get shown() {
      return rows.picked.filter((name) => columns.has(name));
    },
    sort(name) {
      rows.sorted = nextSort(rows.sorted, name);
      rows.arrange();
    },
    /** Of what a text means: `{ rows }` or `{ words }`. */
    filter({ rows: wanted = null, words = "" }) {
      rows.wanted = wanted;
      rows.words = words.toLowerCase().split(/\s+/).filter(Boolean);
      rows.arrange();
    },
    arrange() {
      const found = (rows.wanted ?? everyRow).filter(hasWords);
      const keys = rows.sorted.name === "run" ? table.labels : columns.get(rows.sorted.name)?.keys;
      rows.order = keys ? orderedBy(found, keys, rows.sorted.down) : found;
    },
    /** Columns that were asked for. */
    add(given) {
      for (const one of given) columns.set(one.name, one);
    },
    /** Rows that are others now. */
    renew(places, given) {
      for (const { name, keys, texts } of given) {
        const column = columns.get(name);
        places.forEach((at, k) => column && ([column.keys[at], column.texts[at]] = [keys[k], texts[k]]));
      }
      rows.arrange();
    },
  };

  function hasWords(at) {
    if (!rows.words.length) return true;
    const told = [table.labels[at], table.runs[at], ...rows.shown.map((name) => columns.get(name).texts[at])];
    const text = told.join("\n").toLowerCase();
    return rows.words.every((word) => text.includes(word));
  }

  return rows;
}
