/** One row of the module tree: a pooled element that is filled for whichever module is in sight. */

import { element, setAttribute, setText } from "../dom.js";
import { counted } from "../format.js";
import { shortName } from "../names.js";
import { probeText } from "../probes.js";
import { paintHeatStrip } from "./heat_strip.js";

const ROW_LETTERS = 20;
const fitsRow = (text) => text.length <= ROW_LETTERS;

/** `look` is what the tree knows: { state, folded, flat, current, problems }. */
export function fillRow(node, row, { state, folded, flat, current, problems }) {
  const { name, mark, fold, warn, kind, swatch } = node.parts;
  const depth = flat ? 0 : Math.max(0, row.depth - 1); // the root stands level with its children
  const open = row.children.length && !flat ? !folded.has(row.path) : null;
  const attached = state.probes.byModule.get(row.path) ?? [];
  const problem = problems.get(row.path) ?? "";
  const head = row.kind ? `${row.path}: ${row.kind}` : row.path;
  const title = [head, ...attached.map(probeLine), problem].filter(Boolean);
  node.style.setProperty("--nbp-depth", Math.min(depth, 8));
  node.classList.toggle("nbp-current", row.path === current);
  setAttribute(node, "data-module", row.path);
  setAttribute(node, "aria-selected", state.marked.has(row.path));
  setAttribute(node, "aria-level", depth + 1);
  setAttribute(node, "aria-expanded", open);
  setAttribute(node, "title", title.join("\n"));
  setText(fold, foldSign(open));
  setText(mark, markSign(attached));
  setText(name, flat ? shortName(row.path, fitsRow) : row.name);
  setText(warn, problem ? "▲" : "");
  setText(kind, row.nParams ? `${row.kind} ${counted(row.nParams)}` : row.kind);
  paintHeatStrip(swatch, row.path, state);
}

export function emptyRow(id) {
  const parts = {
    fold: element("span", { class: "nbp-fold", "aria-hidden": "true" }),
    mark: element("span", { class: "nbp-mark" }),
    name: element("span", { class: "nbp-name" }),
    warn: element("span", { class: "nbp-warn" }),
    kind: element("span", { class: "nbp-kind" }),
    swatch: element("canvas", { class: "nbp-swatch", width: 128, height: 10 }),
  };
  const { fold, mark, name, warn, kind, swatch } = parts;
  const title = element("span", { class: "nbp-title" }, fold, mark, name, warn);
  const node = element("div", { class: "nbp-row", role: "treeitem", id }, title, kind, swatch);
  return Object.assign(node, { parts });
}

/** Module -> what went wrong there. */
export function problemTexts({ problems }) {
  return new Map(problems.map((one) => [one.module, one.text]));
}

function probeLine(probe) {
  return `${probe.quantity}, ${probe.schedule}: ${probeText(probe)}`;
}

/** A full dot where something is measured, or will be; a hollow one where nothing is and should. */
function markSign(attached) {
  if (!attached.length) return "";
  return attached.every(({ note, kind }) => note && kind !== "waiting") ? "○" : "●";
}

function foldSign(open) {
  if (open === null) return "";
  return open ? "▾" : "▸";
}
