/** The drawn graph: folding, layout and camera, and what of it is redrawn when. */

import { element, penOf } from "../../dom.js";
import { createBoxes } from "./boxes.js";
import { centred, fitted, inSight, panned, zoomed } from "./camera.js";
import { foldGraph, isOpenable } from "./folding/fold.js";
import { laidOut } from "./layout/laid_out.js";
import { openAtFirst } from "./folding/opening.js";
import { paintRoutes } from "./paint.js";
import { shapeLabels } from "./layout/shapes.js";
import { boxWords } from "./words.js";

const MOST_PX = 240; // of a box that is no frame
const BESIDE_WORDS = 20;
const FOLD_PX = 12;

/** `look()` says at each drawing what the boxes need: { marked, holding, found, lit, labelOf, valueOf }. */
export function createPlane({ theme, look, fail, signal }) {
  const boxes = createBoxes();
  const canvas = element("canvas", { class: "nbp-graph-edges", "aria-hidden": "true" });
  const el = element("div", { class: "nbp-graph-plane" }, boxes.frames, canvas, boxes.el);
  const paper = element("canvas").getContext("2d"); // to measure a letter with
  const room = { width: 0, height: 0 };
  let network = null;
  let open = new Set();
  let layout = { width: 0, height: 0, items: [], routes: [] };
  let labels = [];
  let camera = { x: 0, y: 0, zoom: 1 };
  let isMoved = false; // by the user: then it stays where it is
  let current = null; // key of the box that the keyboard stands on
  let focusing = false;
  let pending = 0;

  const request = () => {
    if (!pending && !signal.aborted) pending = requestAnimationFrame(draw);
  };
  const observer = new ResizeObserver(() => {
    [room.width, room.height] = [el.clientWidth, el.clientHeight];
    if (!isMoved) fit();
    request();
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
      const seen = look();
      boxes.draw(layout.items, { network, camera, room, current, ...seen });
      drawRoutes(seen.lit);
    } catch (error) {
      fail(error); // shown in the panel: a console that nobody opens would hide it
    }
    el.dataset.camera = JSON.stringify(camera);
    el.dataset.items = String(layout.items.length);
    if (focusing) boxes.nodeOf(current)?.focus({ preventScroll: true });
    focusing = false;
  }

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

  function widthOf(letters) {
    return (box) => {
      const { name, kind } = boxWords(network, box);
      const words = name.length * letters.name + (kind ? (kind.length + 1) * letters.kind : 0);
      return Math.min(MOST_PX, Math.ceil(words + BESIDE_WORDS + (isOpenable(box) ? FOLD_PX : 0)));
    };
  }

  function lay() {
    const { fontFamily } = getComputedStyle(boxes.el);
    const letter = (px) => {
      paper.font = `${px}px ${fontFamily}`;
      return paper.measureText("m").width;
    };
    layout = laidOut(network, foldGraph(network, open), widthOf({ name: letter(12), kind: letter(11) }));
    labels = shapeLabels(network, layout);
    if (!layout.items.some(({ key }) => key === current)) current = layout.items[0]?.key ?? null;
    request();
  }

  const itemOf = (key) => layout.items.find((item) => item.key === key) ?? null;

  function fit() {
    isMoved = false;
    if (room.width) camera = fitted(layout, room);
    request();
  }

  function move(next) {
    isMoved = true;
    camera = next;
    request();
  }

  return {
    el,
    boxes: boxes.el,
    request,
    fit,
    itemOf,
    itemAt: (node) => itemOf(node?.closest?.(".nbp-graph-box")?.dataset.key),
    /** Where a box is seen, of a frame its head, in pixels. */
    seenAt({ x, y, width, height, isOpen }) {
      const { zoom } = camera;
      const [left, top] = [(x - camera.x) * zoom, (y - camera.y) * zoom];
      return { left, top, right: left + width * zoom, bottom: top + (isOpen ? 20 : height) * zoom };
    },
    layout: () => layout,
    current: () => current,
    /** Another network, with what was open in the last one as far as it is there. */
    show(other) {
      const isFirst = !network;
      network = other;
      open = isFirst ? openAtFirst(network) : new Set([...open].filter((path) => network.modules.has(path)));
      lay();
      if (!isMoved) fit();
    },
    /** Opens modules, or closes one; the box `key`, if given, stays where it is seen. */
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
    /** The keyboard stands on a box from now on; `focus` takes the focus there. */
    stand(key, focus) {
      current = key;
      focusing ||= focus;
      request();
    },
    zoom: (factor, at = [room.width / 2, room.height / 2]) => move(zoomed(camera, factor, at)),
    pan: (dx, dy) => move(panned(camera, dx, dy)),
    centre: (key) => itemOf(key) && move(centred(camera, itemOf(key), room)),
    reach: (key) => itemOf(key) && move(inSight(camera, itemOf(key), room)),
    room,
  };
}
