/** Colors that color-blind readers can distinguish, on light and dark backgrounds. */

import { penOf } from "../dom.js";
import { valueOr } from "../maps.js";
import { contrast, luminance } from "./contrast.js";

const OKABE_ITO = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442"];
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
const COLOUR_NAMES = ["blue", "vermilion", "green", "pink", "orange", "sky blue", "yellow"];
const DASH_NAMES = ["solid", "dashed", "dotted", "dash-dotted"];
export const N_COLOURS = OKABE_ITO.length;

/** Name of each color with each dash pattern, by index: "blue, solid". */
export const STYLE_NAMES = DASH_NAMES.flatMap((dash) => COLOUR_NAMES.map((colour) => `${colour}, ${dash}`));

const RAW_ALPHAS = [0.45, 0.55, 0.65];
const RAW_CONTRAST = 1.85;

// 33 samples of viridis; between them a straight line is within 3/255 of the original.
const VIRIDIS =
  "440154470d6048186a482374472d7b4537814240863e49893b528b375b8d33638d2f6b8e2c728e297a8e26828e" +
  "23898e21918c1f988b1fa08822a78528ae8032b67a3fbc734ec36b5ec96270cf5784d44b98d83eaddc30c2df23" +
  "d8e219ece51bfde725";

/** Not a number or infinite: a red that viridis does not contain. */
export const NOT_FINITE_COLOUR = "#ff2a55";

/**
 * 0…1 -> [r, g, b]
 * @param {number} share
 */
export function viridis(share) {
  const place = Math.min(Math.max(share, 0), 1) * 32;
  const at = Math.min(31, Math.floor(place));
  const [low, high] = [viridisSample(at), viridisSample(at + 1)];
  return low.map((channel, k) => Math.round(channel + (high[k] - channel) * (place - at)));
}

/** @param {number[]} rgb */
export function opaquePixel([red, green, blue]) {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

/**
 * Line colour and dash bound to a series for good, at least `ratio` to 1 against the ground.
 * @param {number} index
 * @param {number[]} ground
 * @param {number} [ratio]
 */
export function seriesColour(index, ground, ratio = 3) {
  return cssColour(contrasting(rgbOf(OKABE_ITO[index % OKABE_ITO.length]), ground, ratio));
}

/**
 * How opaque a raw line is behind its average: faint, but to be seen on dark ground, too.
 * @param {number} index
 * @param {number[]} ground
 */
export function rawAlpha(index, ground) {
  const line = contrasting(rgbOf(OKABE_ITO[index % OKABE_ITO.length]), ground, 3);
  /** @type {(alpha: number) => number[]} */
  const blended = (alpha) => line.map((channel, k) => channel * alpha + ground[k] * (1 - alpha));
  return RAW_ALPHAS.find((alpha) => contrast(blended(alpha), ground) >= RAW_CONTRAST) ?? RAW_ALPHAS[2];
}

/**
 * A stroke in the colour and dash of a series, as a background.
 * @param {number} index
 * @param {number[]} ground
 */
export function seriesStroke(index, ground) {
  const colour = seriesColour(index, ground);
  const dash = seriesDash(index);
  if (!dash.length) return colour;
  let at = 0;
  const stops = dash.map((length, k) => {
    const from = at;
    at += length;
    return `${k % 2 ? "transparent" : colour} ${from}px ${at}px`;
  });
  return `repeating-linear-gradient(90deg, ${stops.join(", ")})`;
}

/** @param {number} index */
export function seriesDash(index) {
  return DASHES[Math.floor(index / OKABE_ITO.length) % DASHES.length];
}

/**
 * Move a colour towards black or white until it stands out from the ground.
 * @param {number[]} rgb
 * @param {number[]} ground
 * @param {number} ratio
 */
function contrasting(rgb, ground, ratio) {
  const target = luminance(ground) > 0.4 ? 0 : 255;
  for (let share = 0; share < 1; share += 0.04) {
    const mixed = rgb.map((channel) => Math.round(channel + (target - channel) * share));
    if (contrast(mixed, ground) >= ratio) return mixed;
  }
  return [target, target, target];
}

/**
 * Any CSS colour -> [r, g, b]; the browser's own parser, remembered.
 * @param {string} css
 * @returns {number[]}
 */
export function rgbOf(css) {
  return valueOr(knownColours, css, () => {
    const context = penOf(document.createElement("canvas"), { willReadFrequently: true });
    context.fillStyle = css;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  });
}

/** @type {Map<string, number[]>} */
const knownColours = new Map();

/** @param {number[]} rgb */
function cssColour(rgb) {
  return `rgb(${rgb.join(" ")})`;
}

/** @param {number} sample */
function viridisSample(sample) {
  return [0, 2, 4].map((k) => parseInt(VIRIDIS.slice(sample * 6 + k, sample * 6 + k + 2), 16));
}
