/** A word-sized line of the last logged values. */

import { penOf } from "../dom.js";

const WIDTH = 90;
const HEIGHT = 18;

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Array<number | null>} values
 * @param {string} colour
 */
export function paintSparkline(canvas, values, colour) {
  const ratio = devicePixelRatio || 1;
  [canvas.width, canvas.height] = [WIDTH * ratio, HEIGHT * ratio];
  const context = penOf(canvas);
  context.scale(ratio, ratio);
  const known = values.filter((value) => value !== null);
  if (!known.length) return;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  /** @type {(value: number) => number} */
  const y = (value) =>
    high > low ? 2 + ((HEIGHT - 4) * (high - value)) / (high - low) : HEIGHT / 2;
  const pace = (WIDTH - 3) / Math.max(1, values.length - 1);
  context.strokeStyle = colour;
  context.lineWidth = 1.3;
  context.lineCap = "round";
  context.beginPath();
  values.forEach((value, k) => {
    if (value === null) return;
    const before = k > 0 && values[k - 1] !== null;
    if (!before) context.moveTo(1.5 + k * pace, y(value));
    context.lineTo(1.5 + k * pace, y(value));
  });
  context.stroke();
}
