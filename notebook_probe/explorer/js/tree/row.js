/** One row of the module tree: a pooled element that is filled for whichever module is in sight. */

import { element, setAttribute, setHidden, setText } from "../dom.js";
import { counted, grouped } from "../format.js";
import { shortName } from "../names.js";
import { createMark, setSeverity } from "../parts/alerts/mark.js";
import { alertsText } from "../parts/alerts/words.js";
import { probeText } from "../probes.js";
import { paintSwatch, swatchRoom } from "./swatch.js";

/** @typedef {ReturnType<typeof emptyRow>} RowNode */
/**
 * @typedef {{
 *   state: PanelState,
 *   folded: Set<string>,
 *   flat: boolean,
 *   room: { width: number, letter: number },
 *   current: string | null,
 *   problems: Map<string, string>,
 *   badges: Badges,
 *   flags: Flags,
 *   brand: string,
 * }} TreeLook
 */

/**
 * `look` is what the tree knows: { state, folded, flat, room, current, problems, badges, flags, brand }.
 * @param {RowNode} node
 * @param {TreeRow} row
 * @param {TreeLook} look
 */
export function fillRow(node, row, look) {
  const { state, folded, flat, room, current, problems, badges, flags, brand } = look;
  const { name, mark, fold, warn, flag, badge, kind, count, swatch } = node.parts;
  const depth = flat ? 0 : Math.max(0, row.depth - 1); // the root stands level with its children
  const open = row.children.length && !flat ? !folded.has(row.path) : null;
  const attached = state.probes.byModule.get(row.path) ?? [];
  const problem = problems.get(row.path) ?? "";
  const size = row.nParams ? `, ${grouped(row.nParams)} parameters` : "";
  const head = row.kind ? `${row.path}: ${row.kind}${size}` : row.path;
  const alerts = fillBadge(badge, badges, row.path, open === false);
  const pauses = (open === false ? flags.inside : flags.own).get(row.path) ?? [];
  const paused = pauses.length ? `pauses at ${pauses.join(", ")}` : "";
  const title = [head, ...attached.map(probeLine), problem, alerts, paused].filter(Boolean);
  node.style.setProperty("--nbp-depth", String(Math.min(depth, 8)));
  node.classList.toggle("nbp-current", row.path === current);
  node.classList.toggle("nbp-pointed", row.path === state.emphasis?.module);
  setAttribute(node, "data-module", row.path);
  setAttribute(node, "aria-selected", state.marked.has(row.path));
  setAttribute(node, "aria-level", depth + 1);
  setAttribute(node, "aria-expanded", open);
  setAttribute(node, "title", title.join("\n"));
  setText(fold, foldSign(open));
  setText(mark, markSign(attached));
  /** @type {(text: string) => boolean} */
  const fits = (text) => text.length * room.letter <= room.width - swatchRoom(row.path, state);
  setText(name, flat ? shortName(row.path, fits) : row.name);
  setText(warn, problem ? "▲" : "");
  setHidden(flag, !pauses.length);
  setText(kind, row.kind);
  setText(count, row.nParams ? counted(row.nParams) : "");
  paintSwatch(swatch, row.path, state, brand);
}

/** @param {string} id */
export function emptyRow(id) {
  const parts = {
    fold: element("span", { class: "nbp-fold", "aria-hidden": "true" }),
    mark: element("span", { class: "nbp-mark" }),
    name: element("span", { class: "nbp-name" }),
    warn: element("span", { class: "nbp-warn" }),
    flag: element("i", { class: "nbp-flag nbp-row-flag", role: "img", "aria-label": "pauses", hidden: "" }),
    badge: element("span", { class: "nbp-badge", hidden: "" }, createMark("warning"), element("span")),
    kind: element("span", { class: "nbp-class" }),
    count: element("span", { class: "nbp-count" }),
    swatch: element("canvas", { class: "nbp-swatch", width: 128, height: 10 }),
  };
  const { fold, mark, name, warn, flag, badge, kind, count, swatch } = parts;
  const title = element("span", { class: "nbp-title" }, fold, mark, name, warn, flag, badge);
  const what = element("span", { class: "nbp-kind" }, kind, " ", count); // the count wraps out of sight
  const node = element("div", { class: "nbp-row", role: "treeitem", id }, title, what, swatch);
  return Object.assign(node, { parts });
}

/**
 * Its own alerts; of a folded row all inside, too. Returns them in words.
 * @param {HTMLElement} node
 * @param {Badges} badges
 * @param {string} path
 * @param {boolean} closed
 */
function fillBadge(node, { own, inside }, path, closed) {
  const found = (closed ? inside : own).get(path);
  setHidden(node, !found);
  if (!found) return "";
  const severity = found.severe ? "severe" : "warning";
  setAttribute(node, "data-severity", severity);
  const [mark, number] = node.children;
  setSeverity(mark, severity);
  setText(number, found.n > 1 ? grouped(found.n) : "");
  return `${alertsText(found.n)}${closed ? " inside" : ""}${found.severe ? `, ${found.severe} severe` : ""}`;
}

/**
 * Module -> what went wrong there.
 * @param {Pick<Status, "problems">} status
 */
export function problemTexts({ problems }) {
  return new Map(problems.map((one) => [one.module, one.text]));
}

/** @param {ProbeRow} probe */
function probeLine(probe) {
  return `${probe.quantity}, ${probe.schedule}: ${probeText(probe)}`;
}

/**
 * A full dot where something is measured, or will be; a hollow one where nothing is and should.
 * @param {ProbeRow[]} attached
 */
function markSign(attached) {
  if (!attached.length) return "";
  return attached.every(({ note, kind }) => note && kind !== "waiting") ? "○" : "●";
}

/** @param {boolean | null} open */
function foldSign(open) {
  if (open === null) return "";
  return open ? "▾" : "▸";
}
