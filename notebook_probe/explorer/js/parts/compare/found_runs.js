/** Runs that match the typed text. */

import { begunText } from "./names.js";

/**
 * Those whose name, or what they differ in, has every word: "lr=1e-3" is two.
 * @param {RunRow[]} runs
 * @param {string} query
 */
export function searchRuns(runs, query) {
  const words = query.toLowerCase().split(/[\s=]+/).filter(Boolean);
  return runs.filter(({ name, run, differs }) => {
    const text = `${name} ${run} ${differs}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/**
 * What was typed, where it looks like the place of a record that is not listed; else "".
 * @param {string} query
 * @param {RunRow[]} runs
 */
export function typedPlace(query, runs) {
  const isPlace = /[\\/]|\.zarr|^~/.test(query);
  return isPlace && !runs.some(({ run }) => run === query) ? query : "";
}

/**
 * @param {string} query
 * @param {RunRow[]} runs
 */
export function nearRuns(query, runs) {
  const start = query.slice(0, 3).toLowerCase();
  const near = runs.filter(({ name }) => name.toLowerCase().includes(start)).slice(0, 3);
  const words = near.length ? `; near: ${near.map(({ name }) => name).join(", ")}` : "";
  return `Nothing is called ${query}${words}`;
}

/**
 * This run, in the words of a row.
 * @param {Pick<PanelState, "model" | "status" | "parts">} state
 * @returns {ListedRun}
 */
export function ownRow({ model, status, parts }) {
  const { own } = parts.compare;
  /** @type {[string, number | null, Array<number | null>]} */
  const logged = own?.scalar ? [own.scalar, own.last, own.line] : ["", null, []];
  const [scalar, last, line] = status.scalar ?? logged;
  const begun = model.live && status.state !== "finished" ? "now" : begunText(own?.begun_ms ?? 0);
  const row = { run: model.location, name: model.name, begun, steps: status.step };
  return { ...row, scalar, last, line, differs: "this run", problem: "" };
}
