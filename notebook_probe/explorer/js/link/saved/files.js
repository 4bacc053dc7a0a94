/** Files of what is shown, without a kernel: the plots as they stand, the columns that were saved. */

import { penOf } from "../../dom.js";
import { measuredStep } from "../../plots/heat/measured.js";

/**
 * Heat map or vectors above the lines, on the ground of the panel: a PNG's bytes.
 * @param {HTMLElement} root
 * @param {string} title
 */
export async function pictureOf(root, title) {
  const plots = /** @type {HTMLCanvasElement[]} */ ([...root.querySelectorAll(".nbp-plot canvas")]);
  const shown = plots.filter((one) => one.offsetParent);
  const style = getComputedStyle(root);
  const ratio = devicePixelRatio || 1;
  const head = Math.round(28 * ratio);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(...shown.map((one) => one.width));
  canvas.height = shown.reduce((sum, one) => sum + one.height, head);
  const context = penOf(canvas);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = style.color;
  context.font = `600 ${13 * ratio}px ${style.fontFamily}`;
  context.fillText(title, 10 * ratio, 19 * ratio);
  let top = head;
  for (const one of shown) {
    context.drawImage(one, 0, top);
    top += one.height;
  }
  /** @type {Blob | null} */
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("this browser gives no picture of a canvas");
  return new Uint8Array(await blob.arrayBuffer());
}

/**
 * A row per point: of the series that are drawn, then of each row of the heat map.
 * @param {{ lines: DecodedLines | null, heat: DecodedHeat | null }} state
 */
export function csvOf({ lines, heat }) {
  const rows = ["module,quantity,step,value"];
  /** @type {(module: string, quantity: string, step: number, value: number) => void} */
  const add = (module, quantity, step, value) => {
    if (!Number.isNaN(value)) rows.push([quoted(module), quoted(quantity), step, value].join(","));
  };
  const { series, x0 } = lines ?? { series: [], x0: 0 };
  for (const { module, quantity, x, y } of series) {
    y.forEach((value, k) => add(module, quantity, Math.round(x[k] + x0), value));
  }
  const drawn = new Set(series.map(({ module, quantity }) => `${module}\n${quantity}`));
  heat?.rows.forEach((module, row) => {
    if (drawn.has(`${module}\n${heat.quantity}`)) return;
    for (let column = 0; column < heat.columns; column++) {
      const cell = row * heat.columns + column;
      const step = heat.carried[cell] ? null : measuredStep(heat, row, column);
      if (step !== null) add(module, heat.quantity, step, heat.mean[cell]);
    }
  });
  return `${rows.join("\n")}\n`;
}

/** @param {string} text */
function quoted(text) {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
