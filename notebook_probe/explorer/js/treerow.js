/** One row of the module tree: a pooled element that is filled for whichever module is in sight. */

import { element, setAttribute, setText } from "./dom.js";
import { counted } from "./format.js";
import { shortName } from "./names.js";
import { paintSwatch } from "./swatch.js";

const ROW_LETTERS = 20;
const fitsRow = (text) => text.length <= ROW_LETTERS;

/** `look` is what the tree knows: { state, folded, flat, current, marks }. */
export function fillRow(node, row, { state, folded, flat, current, marks }) {
  const { name, mark, fold, warn, kind, swatch } = node.parts;
  const depth = flat ? 0 : Math.max(0, row.depth - 1); // the root stands level with its children
  const open = row.children.length && !flat ? !folded.has(row.path) : null;
  const attached = marks.attached.get(row.path) ?? [];
  const problem = marks.problems.get(row.path) ?? "";
  const note = state.status.notes[row.path] ?? "";
  const title = [`${row.path}: ${row.kind}`, ...attached, note, problem].filter(Boolean);
  node.style.setProperty("--nbp-depth", Math.min(depth, 8));
  node.classList.toggle("nbp-current", row.path === current);
  setAttribute(node, "data-module", row.path);
  setAttribute(node, "aria-selected", state.marked.has(row.path));
  setAttribute(node, "aria-level", depth + 1);
  setAttribute(node, "aria-expanded", open);
  setAttribute(node, "title", title.join("\n"));
  setText(fold, foldSign(open));
  setText(mark, attached.length ? "●" : "");
  setText(name, flat ? shortName(row.path, fitsRow) : row.name);
  setText(warn, problem ? "▲" : "");
  setText(kind, row.nParams ? `${row.kind} ${counted(row.nParams)}` : row.kind);
  paintSwatch(swatch, row.path, state);
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

/** Module -> lines for its title: what is attached, what went wrong; `last` is kept while it holds. */
export function statusMarks({ attached, problems }, last) {
  const byModule = last?.source === attached ? last.attached : attachedLines(attached);
  const wrong = new Map(problems.map((one) => [one.module, one.text]));
  return { source: attached, attached: byModule, problems: wrong };
}

function attachedLines(attached) {
  const lines = new Map();
  for (const [module, quantity, schedule] of attached) {
    if (!lines.has(module)) lines.set(module, []);
    lines.get(module).push(`${quantity}, ${schedule}`);
  }
  return lines;
}

function foldSign(open) {
  if (open === null) return "";
  return open ? "▾" : "▸";
}
