/** The rows and columns in sight as CSV, numbers in full. */

import { element } from "../../js/dom.js";
import { valueAt } from "../../js/maps.js";

const QUOTED = /[",\n\r]/;

/**
 * A line for each row in its order; the first has the names of the columns.
 * @param {Pick<TableRows, "runs" | "labels" | "shown" | "columns" | "order">} rows
 */
export function csvOf({ runs, labels, shown, columns, order }) {
  const found = shown.map((name) => valueAt(columns, name));
  const lines = order.map((at) => [labels[at], runs[at], ...found.map((column) => cellOf(column, at))]);
  return [["name", "run", ...shown], ...lines].map((cells) => `${cells.map(quoted).join(",")}\r\n`).join("");
}

/**
 * A number as it is recorded; the text of what is no finite number.
 * @param {TableColumn} column
 * @param {number} at
 */
function cellOf({ keys, texts }, at) {
  const key = keys[at];
  return typeof key === "number" && Math.abs(key) < Number.MAX_VALUE ? String(key) : texts[at];
}

/** @param {string} text */
function quoted(text) {
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Have the browser save a text as a file.
 * @param {string} filename
 * @param {string} mime
 * @param {string} text
 */
export function saveText(filename, mime, text) {
  const address = URL.createObjectURL(new Blob([text], { type: mime }));
  element("a", { href: address, download: filename }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000); // after the download has begun
}
