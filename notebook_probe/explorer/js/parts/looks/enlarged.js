/** The chosen map, large, beside the same of a second look; the value under the pointer. */

import { element, listener, penOf, setAttribute, setHidden, setText } from "../../dom.js";
import { exact, grouped, significant } from "../../format.js";
import { TITLES } from "./block.js";
import { isShare, paintMap } from "./map_colours.js";

/** @typedef {{ block: ShownBlock, at: MapPixel | null, side: number, theme: Theme }} MapView */
/** @typedef {{ row: number, column: number }} MapPixel */
/**
 * @typedef {{
 *   block: ShownBlock,
 *   map: LookMap,
 *   before: LookMap | null,
 *   scale: MapScale,
 *   step: number,
 *   otherStep: number,
 *   isDifference: boolean,
 * }} EnlargedData
 */

const LARGEST = 132;

/** @param {Pick<PanelParts, "theme" | "signal">} parts */
export function createEnlarged({ theme, signal }) {
  const title = element("b");
  const [one, other] = [mapCanvas(), mapCanvas()];
  const value = element("div", { class: "nbp-look-value", role: "status" });
  const el = element(
    "div",
    { class: "nbp-look-large" },
    title,
    element("div", { class: "nbp-look-pair" }, one.el, other.el),
    value,
  );
  /** @type {EnlargedData | null} */
  let data = null; // { block, map, before, scale, step, otherStep, isDifference }
  /** @type {MapPixel | null} */
  let at = null; // { row, column }

  const listen = listener(signal);
  for (const { canvas } of [one, other]) {
    listen(canvas, "pointermove", (event) => data && point(data, pixelAt(data.block, event, canvas)));
  }

  /**
   * @param {ShownBlock} block
   * @param {PointerEvent} event
   * @param {HTMLCanvasElement} canvas
   */
  function pixelAt(block, event, canvas) {
    const column = Math.floor((event.offsetX / canvas.clientWidth) * block.width);
    const row = Math.floor((event.offsetY / canvas.clientHeight) * block.height);
    return { row, column };
  }

  /**
   * @param {EnlargedData} told
   * @param {MapPixel} pixel
   */
  function point(told, { row, column }) {
    const { height, width } = told.block;
    at = {
      row: Math.min(Math.max(row, 0), height - 1),
      column: Math.min(Math.max(column, 0), width - 1),
    };
    paint(told);
  }

  /** @param {EnlargedData} told */
  function paint(told) {
    const { block, map, before, scale, step, otherStep, isDifference } = told;
    const shown = isDifference && before ? difference(told, before) : { image: map.image };
    const second = isDifference ? null : before;
    const side = Math.min(LARGEST, Math.max(64, (el.clientWidth - 8) / (second ? 2 : 1)));
    const words = isDifference ? `step ${grouped(step)} − ${grouped(otherStep)}` : `step ${grouped(step)}`;
    one.show(shown.image, words, { block, at, side, theme });
    setHidden(other.el, !second);
    if (second) other.show(second.image, `step ${grouped(otherStep)}`, { block, at, side, theme });
    setText(value, at ? valueText(told, at) : "Point at a pixel for its value.");
    setAttribute(el, "data-low", scale.low);
  }

  return {
    el,
    /**
     * Point so many rows further down and columns to the right; at first in the middle.
     * @param {number} down
     * @param {number} right
     */
    step(down, right) {
      if (!data) return;
      const { height, width } = data.block;
      const middle = { row: (height >> 1) - down, column: (width >> 1) - right };
      const { row, column } = at ?? middle;
      point(data, { row: row + down, column: column + right });
    },
    /** @param {EnlargedData} told */
    show(told) {
      const moved = data && (data.block.height !== told.block.height || data.block.width !== told.block.width);
      data = told;
      if (moved) at = null;
      setText(title, nameOf(told.block, told.map.place));
      paint(told);
    },
  };
}

function mapCanvas() {
  const label = "The chosen map; Shift and arrows point";
  const canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": label });
  const caption = element("span", { class: "nbp-soft" });
  const el = element("div", {}, canvas, caption);
  return {
    el,
    canvas,
    /**
     * @param {CanvasImageSource} image
     * @param {string} words
     * @param {MapView} view
     */
    show(image, words, { block, at, side, theme }) {
      const ratio = devicePixelRatio || 1;
      const scale = side / Math.max(block.height, block.width);
      const [width, height] = [Math.max(block.width * scale, 8), Math.max(block.height * scale, 8)];
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      const context = penOf(canvas);
      context.scale(ratio, ratio);
      context.imageSmoothingEnabled = false;
      context.drawImage(image, 0, 0, width, height);
      setText(caption, words);
      if (!at) return;
      const square = Math.max(scale, 4);
      /** @type {(place: number) => number} */
      const corner = (place) => place * scale - (square - scale) / 2;
      context.strokeStyle = theme.read().ink;
      context.strokeRect(corner(at.column), corner(at.row), square, square);
    },
  };
}

/**
 * @param {EnlargedData} data
 * @param {LookMap} before
 */
function difference({ block, map, scale }, before) {
  const values = map.values.map((value, k) => value - before.values[k]);
  const largest = values.reduce((size, value) => (Number.isFinite(value) ? Math.max(size, Math.abs(value)) : size), 0);
  const own = { ...scale, low: -largest || -1, high: largest || 1 };
  return { image: paintMap(values, block.height, block.width, own) };
}

/**
 * @param {EnlargedData} data
 * @param {MapPixel} pixel
 */
function valueText({ block, map, before, otherStep }, { row, column }) {
  const k = row * block.width + column;
  const was = before ? `, ${exact(before.values[k])} at ${grouped(otherStep)}` : "";
  if (isShare(block)) {
    return `query ${row} → key ${column}: ${significant(100 * map.values[k])} % of its attention${was}`;
  }
  return `row ${row}, column ${column}: ${exact(map.values[k])}${was}`;
}

/**
 * @param {Pick<ShownBlock, "tensor" | "places">} block
 * @param {number} place
 */
function nameOf({ tensor, places }, place) {
  if (places.length === 1) return TITLES[tensor] ?? tensor;
  return isShare({ tensor }) ? `head ${place}` : `channel ${place}`;
}
