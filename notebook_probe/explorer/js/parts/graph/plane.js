/** The drawn graph: folding, layout and camera, and what of it is redrawn when. */

import { element, penOf } from "../../dom.js";
import { createBoxes } from "./boxes.js";
import { centred, fitted, inSight, panned, zoomed } from "./camera.js";
import { foldGraph, isOpenable } from "./folding/fold.js";
import { laidOut } from "./layout/laid_out.js";
import { openAtFirst } from "./folding/opening.js";
import { createOverview } from "./overview.js";
import { paintRoutes } from "./paint.js";
import { shapeLabels } from "./layout/shapes.js";
import { boxWords } from "./words.js";

/**
 * @typedef {Pick<PanelParts, "theme" | "fail" | "signal"> & {
 *   look: (network: GraphNetwork) => GraphLook,
 * }} PlaneParts
 */

const MOST_PX = 240; // of a box that is no frame
const LETTERS_PX = 13; // as large as words are in the plane where it is first drawn smallest
const BESIDE_WORDS = 20;
const FOLD_PX = 12;

/**
 * `look()` says at each drawing what the boxes need: { marked, holding, found, lit, labelOf, valueOf }.
 * @param {PlaneParts} parts
 */
export function createPlane({ theme, look, fail, signal }) {
  const boxes = createBoxes();
  const canvas = element("canvas", { class: "nbp-graph-edges", "aria-hidden": "true" });
  const el = element("div", { class: "nbp-graph-plane" }, boxes.frames, canvas, boxes.el);
  const overview = createOverview((x, y) => move(centred(camera, [x, y], room)), signal);
  const paper = penOf(element("canvas")); // to measure a letter with
  const room = { width: 0, height: 0 };
  /** @type {GraphNetwork | null} */
  let network = null;
  /** @type {Set<string>} */
  let open = new Set();
  /** @type {GraphLayout} */
  let layout = { width: 0, height: 0, items: [], routes: [] };
  /** @type {GraphLabel[]} */
  let labels = [];
  let camera = { x: 0, y: 0, zoom: 1 };
  let isMoved = false; // by the user: then it stays where it is
  /** @type {string | null} */
  let current = null; // key of the box that the keyboard stands on
  let focusing = false;
  let pending = 0;

  const request = () => {
    if (!pending && !signal.aborted) pending = requestAnimationFrame(draw);
  };
  /** What is drawn of the boxes has changed, not only where they are seen. */
  const change = () => {
    overview.forget();
    request();
  };
  const observer = new ResizeObserver(() => {
    [room.width, room.height] = [el.clientWidth, el.clientHeight];
    if (!isMoved) fit();
    change();
  });
  observer.observe(el);
  signal.addEventListener("abort", () => {
    observer.disconnect();
    cancelAnimationFrame(pending);
  });

  function draw() {
    pending = 0;
    if (!room.width || !network) return;
    try {
      const seen = look(network);
      boxes.draw(layout.items, { network, camera, room, current, ...seen });
      drawRoutes(seen.lit);
      overview.draw({ layout, camera, room, colours: theme.read() }, seen);
    } catch (error) {
      fail(error); // shown in the panel: a console that nobody opens would hide it
    }
    el.dataset.camera = JSON.stringify(camera);
    el.dataset.items = String(layout.items.length);
    if (focusing && current !== null) boxes.nodeOf(current)?.focus({ preventScroll: true });
    focusing = false;
  }

  /** @param {Set<string>} lit */
  function drawRoutes(lit) {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.round(room.width * ratio), Math.round(room.height * ratio)];
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    const context = penOf(canvas);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, room.width, room.height);
    paintRoutes(context, { routes: layout.routes, camera, room, colours: theme.read(), lit, labels });
  }

  /**
   * @param {GraphNetwork} shown
   * @param {number} letter
   * @returns {(box: GraphBox) => number}
   */
  function widthOf(shown, letter) {
    return (box) => {
      const { name, kind } = boxWords(shown, box);
      const words = (name.length + (kind ? kind.length + 1 : 0)) * letter;
      return Math.min(MOST_PX, Math.ceil(words + BESIDE_WORDS + (isOpenable(box) ? FOLD_PX : 0)));
    };
  }

  function lay() {
    if (!network) return;
    const { fontFamily } = getComputedStyle(boxes.el);
    paper.font = `${LETTERS_PX}px ${fontFamily}`;
    const measure = widthOf(network, paper.measureText("m").width);
    layout = laidOut(network, foldGraph(network, open), measure);
    labels = shapeLabels(network, layout);
    if (!layout.items.some(({ key }) => key === current)) current = layout.items[0]?.key ?? null;
    request();
  }

  /** @type {(key: string | null | undefined) => GraphItem | null} */
  const itemOf = (key) => layout.items.find((item) => item.key === key) ?? null;

  function fit() {
    isMoved = false;
    if (room.width) camera = fitted(layout, room);
    request();
  }

  /** @param {GraphCamera} next */
  function move(next) {
    isMoved = true;
    camera = next;
    request();
  }

  return {
    el,
    boxes: boxes.el,
    overview: overview.el,
    request,
    change,
    fit,
    itemOf,
    /** @param {Element} node */
    itemAt: (node) => itemOf(node.closest(".nbp-graph-box")?.dataset.key),
    /**
     * Position of a box on the screen in pixels; of a frame, the position of its head.
     * @param {GraphItem} item
     */
    seenAt({ x, y, width, height, isOpen }) {
      const { zoom } = camera;
      const [left, top] = [(x - camera.x) * zoom, (y - camera.y) * zoom];
      return { left, top, right: left + width * zoom, bottom: top + (isOpen ? 20 : height) * zoom };
    },
    layout: () => layout,
    current: () => current,
    /**
     * Another network, with what was open in the last one as far as it is there.
     * @param {GraphNetwork} other
     */
    show(other) {
      open = network ? new Set([...open].filter((path) => other.modules.has(path))) : openAtFirst(other);
      network = other;
      lay();
      if (!isMoved) fit();
    },
    /**
     * Opens modules, or closes one; the box `key`, if given, stays where it is seen.
     * @param {string[]} paths
     * @param {boolean} isOpen
     * @param {string | null} [key]
     */
    turn(paths, isOpen, key = null) {
      const before = itemOf(key);
      for (const path of paths) {
        if (isOpen) open.add(path);
        else open.delete(path);
      }
      lay();
      const after = itemOf(key);
      if (!isMoved && !before) fit();
      if (!before || !after) return;
      const shift = after.x + (after.width - before.width) / 2 - before.x;
      move({ ...camera, x: camera.x + shift, y: camera.y + after.y - before.y });
    },
    /**
     * The keyboard stands on a box from now on; `focus` takes the focus there.
     * @param {string | null} key
     * @param {boolean} focus
     */
    stand(key, focus) {
      current = key;
      focusing ||= focus;
      request();
    },
    /** @type {(factor: number, at?: [number, number]) => void} */
    zoom: (factor, at = [room.width / 2, room.height / 2]) => move(zoomed(camera, factor, at)),
    /** @type {(dx: number, dy: number) => void} */
    pan: (dx, dy) => move(panned(camera, dx, dy)),
    /** @param {string} key */
    centre(key) {
      const item = itemOf(key);
      if (item) move(centred(camera, [item.x + item.width / 2, item.y + item.height / 2], room));
    },
    /** @param {string} key */
    reach(key) {
      const item = itemOf(key);
      if (item) move(inSight(camera, item, room));
    },
    room,
  };
}
