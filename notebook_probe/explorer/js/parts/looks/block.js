/** One tensor of a look: its maps side by side on one scale; a click chooses a channel. */

import { element, penOf, setAttribute, setText } from "../../dom.js";
import { significant } from "../../format.js";
import { paintMap, scaleOf } from "./map_colours.js";

/** @typedef {Pick<PanelParts, "theme" | "signal"> & { chosen: (tensor: string, place: number) => void }} BlockParts */

const GAP = 6;
const THUMB = 60;
const SMALLEST = 22;
const TALLEST_ROWS = 2; // of thumbnails; more make them smaller

/** @type {Record<string, string>} */
export const TITLES = {
  input: "input",
  output: "output",
  grad_output: "gradient",
  weight: "weight",
  grad: "weight's gradient",
  update: "update",
  attention: "attention",
};

/**
 * `data` is { block, maps, scale }; `chosen(tensor, place)` is called by a click and by `step`.
 * @param {BlockParts} parts
 */
export function createBlock({ theme, chosen, signal }) {
  const title = element("b");
  const shape = element("span", { class: "nbp-soft" });
  const note = element("span", { class: "nbp-soft nbp-look-note" });
  const bar = element("canvas", { class: "nbp-look-scale", width: 90, height: 10, "aria-hidden": "true" });
  const [low, high] = [element("span"), element("span")];
  const canvas = element("canvas", { class: "nbp-look-maps", tabindex: "0", role: "img" });
  const el = element(
    "div",
    { class: "nbp-look-block" },
    element(
      "div",
      { class: "nbp-look-head" },
      title,
      shape,
      note,
      element("span", { class: "nbp-look-range nbp-soft" }, low, bar, high),
    ),
    canvas,
  );
  /** @type {BlockData | null} */
  let data = null;
  /** @type {ReturnType<typeof layoutOf> | null} */
  let layout = null;
  let selected = 0;

  canvas.addEventListener("click", (event) => choose(indexAt(event)), { signal });
  const observer = new ResizeObserver(paint);
  observer.observe(el);
  signal.addEventListener("abort", () => observer.disconnect());

  /** @param {number | null} index */
  function choose(index) {
    if (index === null || !data) return;
    chosen(data.block.tensor, data.block.places[index]);
  }

  /** @param {MouseEvent} event */
  function indexAt(event) {
    if (!layout || !data) return null;
    const column = Math.floor(event.offsetX / (layout.width + GAP));
    const row = Math.floor(event.offsetY / (layout.height + GAP));
    const index = row * layout.columns + column;
    return column < layout.columns && index < data.maps.length ? index : null;
  }

  function paint() {
    const room = el.clientWidth;
    if (!data || !room) return;
    const grid = layoutOf(data, room);
    layout = grid;
    const ratio = devicePixelRatio || 1;
    const rows = Math.ceil(data.maps.length / grid.columns);
    const [width, height] = [room, rows * (grid.height + GAP) - GAP + 4];
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    const context = penOf(canvas);
    context.scale(ratio, ratio);
    context.imageSmoothingEnabled = false;
    const colours = theme.read();
    data.maps.forEach((map, index) => {
      const x = 2 + (index % grid.columns) * (grid.width + GAP);
      const y = 2 + Math.floor(index / grid.columns) * (grid.height + GAP);
      context.drawImage(map.image, x, y, grid.width - 2, grid.height - 2);
      context.strokeStyle = index === selected ? colours.brand : colours.line;
      context.lineWidth = index === selected ? 2 : 1;
      context.strokeRect(x - 0.5, y - 0.5, grid.width - 1, grid.height - 1);
    });
  }

  return {
    el,
    /**
     * Choose the map so many rows down and so many columns to the right.
     * @param {number} down
     * @param {number} right
     */
    step(down, right) {
      if (!layout || !data) return;
      choose(Math.min(Math.max(selected + down * layout.columns + right, 0), data.maps.length - 1));
    },
    /**
     * `place` is the channel that is chosen in all blocks.
     * @param {BlockData} told
     * @param {number} place
     */
    show(told, place) {
      data = told;
      selected = Math.max(0, data.block.places.indexOf(place));
      const { tensor, facts, note: words } = data.block;
      setText(title, TITLES[tensor] ?? tensor);
      setText(shape, facts.shape.join("×"));
      const sampled = facts.every > 1 ? `every ${facts.every}th along ${facts.along} is kept` : "";
      setText(note, [words, sampled].filter(Boolean).join(" · "));
      setText(low, significant(data.scale.low, 2));
      setText(high, significant(data.scale.high, 2));
      const name = `${TITLES[tensor] ?? tensor}, ${data.maps.length} maps; arrows choose one`;
      setAttribute(canvas, "aria-label", name);
      setAttribute(canvas, "data-tensor", tensor);
      setAttribute(canvas, "data-selected", data.block.places[selected]);
      paintScale(bar, data.scale);
      paint();
    },
  };
}

/**
 * Maps of a block, of its own look or with `offset` of another, painted once.
 * @param {ShownBlock} block
 * @param {Float32Array} buffer
 * @param {number} offset
 * @param {MapScale} scale
 * @returns {LookMap[]}
 */
export function mapsOf(block, buffer, offset, scale) {
  const size = block.height * block.width;
  return block.places.map((place, k) => {
    const values = buffer.subarray(offset + k * size, offset + (k + 1) * size);
    return { place, values, image: paintMap(values, block.height, block.width, scale) };
  });
}

/**
 * @param {ShownBlock} block
 * @param {Float32Array} buffer
 * @param {string} ground
 */
export function blockScale(block, buffer, ground) {
  const size = block.height * block.width * block.places.length;
  const own = buffer.subarray(block.offset, block.offset + size);
  if (block.other === undefined) return scaleOf(block, own, ground);
  const both = new Float32Array(2 * size);
  both.set(own);
  both.set(buffer.subarray(block.other, block.other + size), size);
  return scaleOf(block, both, ground);
}

/**
 * As large as the space allows: one map over the whole width, several in few rows.
 * @param {BlockData} data
 * @param {number} room
 */
function layoutOf({ block, maps }, room) {
  const aspect = block.height / block.width;
  if (maps.length === 1) {
    const width = Math.min(room, Math.max(block.width, 2 * THUMB) * (block.width < 64 ? 4 : 1));
    return { columns: 1, width, height: Math.min(Math.max(width * aspect, 14), 2 * THUMB) };
  }
  let width = THUMB;
  let columns = Math.max(1, Math.floor((room + GAP) / (width + GAP)));
  while (maps.length > TALLEST_ROWS * columns && width > SMALLEST) {
    width -= 2;
    columns = Math.max(1, Math.floor((room + GAP) / (width + GAP)));
  }
  return { columns, width, height: Math.min(Math.max(width * aspect, 10), 2 * THUMB) };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {MapScale} scale
 */
function paintScale(canvas, { pixels }) {
  const context = penOf(canvas);
  const image = new ImageData(pixels.length, 1);
  new Uint32Array(image.data.buffer).set(pixels);
  const strip = new OffscreenCanvas(pixels.length, 1);
  penOf(strip).putImageData(image, 0, 0);
  context.drawImage(strip, 0, 0, canvas.width, canvas.height);
}
