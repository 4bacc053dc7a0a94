/** The boxes as elements over the canvas, those in sight alone; the frames of open modules below it. */

import { element, setAttribute, setText } from "../../dom.js";
import { valueOr } from "../../maps.js";
import { contrast } from "../../plots/contrast.js";
import { isNear } from "./camera.js";
import { boxWords } from "./words.js";
import { isOpenable } from "./folding/fold.js";

/** @typedef {{ node: ReturnType<typeof emptyBox>, frame: HTMLElement | null }} ShownBox */
/**
 * @typedef {GraphLook & {
 *   network: GraphNetwork,
 *   camera: GraphCamera,
 *   room: GraphRoom,
 *   current: string | null,
 * }} BoxLook
 */

const LEGIBLE = 0.6; // zoom below which boxes have no words: a line of text is higher than they are
const ROOMY = 0.75; // zoom below which only names fit, without the class
const [DARK, LIGHT] = [
  [17, 20, 23],
  [255, 255, 255],
];

export function createBoxes() {
  const frames = element("div", { class: "nbp-graph-frames", "aria-hidden": "true" });
  const el = element("div", {
    class: "nbp-graph-boxes",
    role: "tree",
    "aria-label": "Graph of the network",
    "aria-multiselectable": "true",
  });
  /** @type {Map<string, ShownBox>} */
  const shown = new Map(); // key -> { node, frame, item }

  /**
   * `look` is what the graph knows: { network, camera, room, current } and of `look`.
   * @param {GraphItem[]} items
   * @param {BoxLook} look
   */
  function draw(items, look) {
    const { camera, room, current } = look;
    const wanted = items.filter((item) => isNear(camera, item, room) || item.key === current);
    const keys = new Set(wanted.map(({ key }) => key));
    for (const [key, { node, frame }] of shown) {
      if (keys.has(key)) continue;
      node.remove();
      frame?.remove();
      shown.delete(key);
    }
    for (const layer of [frames, el]) {
      layer.style.transform = `scale(${camera.zoom}) translate(${-camera.x}px, ${-camera.y}px)`;
    }
    el.style.setProperty("--nbp-zoom", String(camera.zoom));
    el.classList.toggle("nbp-tiny", camera.zoom < LEGIBLE);
    el.classList.toggle("nbp-small", camera.zoom < ROOMY);
    for (const item of wanted) {
      const one = valueOr(shown, item.key, () => ({ node: emptyBox(item), frame: null }));
      if (!one.node.isConnected) el.append(one.node);
      if (item.isOpen !== Boolean(one.frame)) one.frame = turned(one.frame, frames);
      fill(one.node, item, look);
      if (one.frame) fillFrame(one.frame, item, look);
    }
  }

  /** @param {string} key */
  const nodeOf = (key) => shown.get(key)?.node ?? null;

  return { el, frames, draw, nodeOf };
}

/**
 * @param {HTMLElement | null} frame
 * @param {HTMLElement} frames
 */
function turned(frame, frames) {
  frame?.remove();
  return frame ? null : frames.appendChild(element("div", { class: "nbp-graph-frame" }));
}

/**
 * @param {HTMLElement} frame
 * @param {GraphItem} item
 * @param {GraphLook} look
 */
function fillFrame(frame, item, { marked, holding }) {
  place(frame, item, item.height);
  setAttribute(frame, "data-marked", marked.has(item.key) ? "own" : holding.has(item.key) ? "holds" : null);
}

/** @param {GraphItem} item */
function emptyBox({ key, path }) {
  const fold = element("span", { class: "nbp-graph-fold", "aria-hidden": "true" });
  const name = element("span", { class: "nbp-graph-name" });
  const kind = element("span", { class: "nbp-graph-kind" });
  const node = element("div", { class: "nbp-graph-box", role: "treeitem", "data-key": key }, fold, name, kind);
  if (path !== null) setAttribute(node, "data-module", path);
  return Object.assign(node, { parts: { fold, name, kind } });
}

/**
 * @param {HTMLElement} node
 * @param {GraphItem} item
 * @param {number} height
 */
function place(node, { x, y, width }, height) {
  node.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
  node.style.width = `${width.toFixed(1)}px`;
  node.style.height = `${height.toFixed(1)}px`;
}

/**
 * @param {ShownBox["node"]} node
 * @param {GraphItem} item
 * @param {BoxLook} look
 */
function fill(node, item, { network, marked, holding, found, current, labelOf, valueOf }) {
  const { name, kind } = boxWords(network, item);
  place(node, item, item.isOpen ? 22 : item.height);
  setAttribute(node, "data-kind", item.path === null ? network.nodes[item.nodes[0]].kind : "module");
  setAttribute(node, "data-open", item.isOpen);
  setAttribute(node, "aria-level", item.depth + 1);
  setAttribute(node, "aria-expanded", isOpenable(item) ? item.isOpen : null);
  setAttribute(node, "aria-selected", marked.has(item.key));
  setAttribute(node, "data-holds", holding.has(item.key) ? "" : null);
  setAttribute(node, "data-found", found.has(item.key) ? "" : null);
  setAttribute(node, "aria-label", labelOf(item));
  setAttribute(node, "tabindex", item.key === current ? 0 : -1);
  const { fold, name: nameNode, kind: kindNode } = node.parts;
  setText(fold, isOpenable(item) ? (item.isOpen ? "▾" : "▸") : "");
  setText(nameNode, name);
  setText(kindNode, kind);
  paint(node, item.isOpen ? null : valueOf(item));
}

/**
 * The colour of its value, words in black or white, whichever is read better on it.
 * @param {HTMLElement} node
 * @param {GraphValue | null} value
 */
function paint(node, value) {
  const rgb = value?.rgb ?? null;
  node.classList.toggle("nbp-coloured", rgb !== null);
  node.classList.toggle("nbp-unmeasured", value !== null && rgb === null);
  node.style.backgroundColor = rgb ? `rgb(${rgb.join(", ")})` : "";
  const words = rgb && (contrast(rgb, DARK) > contrast(rgb, LIGHT) ? DARK : LIGHT);
  node.style.color = words ? `rgb(${words.join(", ")})` : "";
}
