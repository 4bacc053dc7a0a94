/** Description of a box of the graph, in a few lines. */

import { element, setHidden } from "../../dom.js";
import { grouped } from "../../format.js";
import { valueAt } from "../../maps.js";
import { isOpenable } from "./folding/fold.js";
import { callsText, inTree, lastNode, shapeText } from "./words.js";

const GAP = 12; // between a box and its tip

/**
 * Lines of text, the name of the box first.
 * @param {GraphNetwork} network
 * @param {GraphItem} box
 * @param {ToldValue} told
 */
export function boxLines(network, box, { quantity, value }) {
  const { nodes, modules } = network;
  const last = nodes[lastNode(network, box)];
  const flows = [shapeText(last.shape), last.dtype].filter(Boolean).join("  ");
  const measured = value ? `${quantity}  ${value.text}` : "";
  if (box.path === null) return nodeLines(last, flows);
  const { path, kind, nParams } = valueAt(modules, box.path);
  const size = nParams ? `${grouped(nParams)} parameters` : "";
  const inside = box.nodes.length > 1 ? `${grouped(box.nodes.length)} operators` : operatorText(last);
  return [
    `${inTree(path)}  ${kind}`,
    measured,
    flows && `gives ${flows}`,
    [size, callsText(network, box)].filter(Boolean).join(", "),
    inside,
  ].filter(Boolean);
}

/**
 * @param {GraphNode} node
 * @param {string} flows
 */
function nodeLines({ kind, op, name, module, given }, flows) {
  const within = kind === "operator" ? `in ${inTree(module)}` : kind;
  const takes = given.length ? `takes ${given.slice(0, 4).join(", ")}${given.length > 4 ? " …" : ""}` : "";
  return [kind === "operator" ? `${op}  ${name}` : name, within, flows && `gives ${flows}`, takes].filter(Boolean);
}

/** @param {GraphNode} node */
function operatorText({ kind, op }) {
  return kind === "operator" ? `operator ${op}` : "";
}

/**
 * @param {GraphNetwork} network
 * @param {GraphItem} box
 * @param {ToldValue} told
 */
export function boxTip(network, box, told) {
  const [head, ...rest] = boxLines(network, box, told);
  const how = isOpenable(box) ? `double-click ${box.isOpen ? "closes" : "opens"} it` : "";
  return [
    element("div", { class: "nbp-tip-head" }, element("b", {}, head)),
    ...rest.map((text) => element("div", {}, text)),
    ...(how ? [element("div", { class: "nbp-soft" }, how)] : []),
  ];
}

/**
 * Beside a box that is seen at `{ left, right, top, bottom }`, where there is room for it.
 * @param {HTMLElement} tip
 * @param {Record<"left" | "right" | "top" | "bottom", number>} seen
 * @param {GraphRoom} room
 * @param {Node[]} rows
 */
export function placeTip(tip, { left, right, top, bottom }, room, rows) {
  tip.replaceChildren(...rows);
  setHidden(tip, false);
  const { offsetWidth: width, offsetHeight: height } = tip;
  const isRight = right + GAP + width <= room.width;
  const x = isRight ? right + GAP : Math.max(0, left - GAP - width);
  const y = Math.min(Math.max(0, (top + bottom - height) / 2), Math.max(0, room.height - height));
  tip.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}
