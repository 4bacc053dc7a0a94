/** The chosen map, large, beside the same of a second look; the value under the pointer. */

import { element, penOf, setAttribute, setHidden, setText } from "../../dom.js";
import { exact, grouped, significant } from "../../format.js";
import { TITLES } from "./block.js";
import { isShare, paintMap } from "./map_colours.js";

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
  let data = null; // { block, map, before, scale, step, otherStep, isDifference }
  let at = null; // { row, column }

  for (const { canvas } of [one, other]) {
    canvas.addEventListener("pointermove", (event) => point(pixelAt(event, canvas)), { signal });
  }

  /** @param {HTMLCanvasElement} canvas */
  function pixelAt(event, canvas) {
    const { block } = data;
    const column = Math.floor((event.offsetX / canvas.clientWidth) * block.width);
    const row = Math.floor((event.offsetY / canvas.clientHeight) * block.height);
    return { row, column };
  }

  function point({ row, column }) {
    const { height, width } = data.block;
    at = {
      row: Math.min(Math.max(row, 0), height - 1),
      column: Math.min(Math.max(column, 0), width - 1),
    };
    paint();
  }

  function paint() {
    const { block, map, before, scale, step, otherStep, isDifference } = data;
    const shown = isDifference && before ? difference(data) : { image: map.image };
    const both = before && !isDifference;
    const side = Math.min(LARGEST, Math.max(64, (el.clientWidth - 8) / (both ? 2 : 1)));
    const words = isDifference ? `step ${grouped(step)} − ${grouped(otherStep)}` : `step ${grouped(step)}`;
    one.show(shown.image, words, { block, at, side, theme });
    setHidden(other.el, !both);
    if (both) other.show(before.image, `step ${grouped(otherStep)}`, { block, at, side, theme });
    setText(value, at ? valueText(data, at) : "Point at a pixel for its value.");
    setAttribute(el, "data-low", scale.low);
  }

  return {
    el,
    /** Point so many rows further down and columns to the right; at first in the middle. */
    step(down, right) {
      const { height, width } = data.block;
      const middle = { row: (height >> 1) - down, column: (width >> 1) - right };
      const { row, column } = at ?? middle;
      point({ row: row + down, column: column + right });
    },
    show(told) {
      const moved = data && (data.block.height !== told.block.height || data.block.width !== told.block.width);
      data = told;
      if (moved) at = null;
      setText(title, nameOf(data.block, data.map.place));
      paint();
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
      const corner = (place) => place * scale - (square - scale) / 2;
      context.strokeStyle = theme.read().ink;
      context.strokeRect(corner(at.column), corner(at.row), square, square);
    },
  };
}

function difference({ block, map, before, scale }) {
  const values = map.values.map((value, k) => value - before.values[k]);
  const largest = values.reduce((size, value) => (Number.isFinite(value) ? Math.max(size, Math.abs(value)) : size), 0);
  const own = { ...scale, low: -largest || -1, high: largest || 1 };
  return { image: paintMap(values, block.height, block.width, own) };
}

function valueText({ block, map, before, otherStep }, { row, column }) {
  const k = row * block.width + column;
  const was = before ? `, ${exact(before.values[k])} at ${grouped(otherStep)}` : "";
  if (isShare(block)) {
    return `query ${row} → key ${column}: ${significant(100 * map.values[k])} % of its attention${was}`;
  }
  return `row ${row}, column ${column}: ${exact(map.values[k])}${was}`;
}

function nameOf({ tensor, places }, place) {
  if (places.length === 1) return TITLES[tensor] ?? tensor;
  return isShare({ tensor }) ? `head ${place}` : `channel ${place}`;
}
