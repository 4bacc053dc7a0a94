/** Frames around some rows of the heat map, from a step on. */

import { element } from "../../dom.js";

/** @typedef {{ axis: Axis, box: PlotBox, frame: ShownHeat }} OutlinedPlot */

/** @param {Plot} plot */
export function createOutlines(plot) {
  let shown = "";

  /**
   * Rows of `modules` from `step` on; none without a cursor that names modules.
   * @param {OutlinedPlot | null} painted
   * @param {Cursor | null} cursor
   */
  function place(painted, cursor) {
    const boxes = painted && cursor?.modules ? boxesOf(painted, cursor.step, cursor.modules) : [];
    const wanted = JSON.stringify(boxes);
    if (wanted === shown) return;
    shown = wanted;
    for (const old of plot.el.querySelectorAll(".nbp-outline")) old.remove();
    plot.el.append(...boxes.map(outline));
  }

  return { place };
}

/**
 * @param {OutlinedPlot} painted
 * @param {number} step
 * @param {string[]} modules
 * @returns {number[][]}
 */
function boxesOf({ axis, box, frame }, step, modules) {
  const wanted = wantedRows(frame.rows, modules);
  const height = (box.bottom - box.top) / frame.rows.length;
  const left = Math.max(box.left, axis.place(step));
  const right = Math.min(box.right, axis.place(frame.end_step + 1));
  if (right - left < 2) return [];
  return runs(frame.rows, wanted).map(([first, last]) => {
    const size = [right - left, Math.max(3, (last + 1 - first) * height)];
    return [left, box.top + first * height, ...size].map(Math.round);
  });
}

/**
 * Those of the modules; of a module without a row of its own all below it.
 * @param {string[]} rows
 * @param {string[]} modules
 */
function wantedRows(rows, modules) {
  const known = new Set(rows);
  const above = new Set(modules.filter((module) => !known.has(module)));
  const named = new Set(modules);
  return new Set(rows.filter((row) => named.has(row) || isBelow(row, above)));
}

/**
 * @param {string} path
 * @param {Set<string>} modules
 */
function isBelow(path, modules) {
  for (let end = path.lastIndexOf("."); end > 0; end = path.lastIndexOf(".", end - 1)) {
    if (modules.has(path.slice(0, end))) return true;
  }
  return false;
}

/**
 * First and last row of each stretch of wanted ones.
 * @param {string[]} rows
 * @param {Set<string>} wanted
 */
function runs(rows, wanted) {
  /** @type {Array<[number, number]>} */
  const found = [];
  rows.forEach((name, row) => {
    if (!wanted.has(name)) return;
    const last = found.at(-1);
    if (last?.[1] === row - 1) last[1] = row;
    else found.push([row, row]);
  });
  return found;
}

/** @param {number[]} box */
function outline([x, y, width, height]) {
  const at = `transform: translate(${x}px, ${y}px); width: ${width}px; height: ${height}px`;
  return element("div", { class: "nbp-outline", style: at });
}
