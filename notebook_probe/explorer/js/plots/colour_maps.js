/** Color maps: for sizes, for shares of a whole, and for two directions. */

import { valueOr } from "../maps.js";
import { opaquePixel, viridis } from "./colour.js";
import { luminance } from "./contrast.js";

// From nothing to most, the ground apart; outwards darker on a light ground, lighter on a dark one.
const BLUES = {
  light: ["#8ec4e8", "#0072b2", "#063a63"],
  dark: ["#0b4f7d", "#3a9bd9", "#bfe3ff"],
};
const ORANGES = {
  light: ["#f3b98f", "#d55e00", "#7d3200"],
  dark: ["#7a3a10", "#e0782a", "#ffd3ab"],
};

/** @type {Map<string, ColourMap>} */
const made = new Map();

/**
 * `{ at(share) -> [r, g, b], pixels, hasGround }` of "value", "share" or "sign", on a ground [r, g, b].
 * @param {string} name
 * @param {number[]} ground
 */
export function colourMap(name, ground) {
  const key = `${name} ${ground}`;
  return valueOr(made, key, () => {
    const at = mapped(name, ground);
    const pixels = Uint32Array.from({ length: 256 }, (_, i) => opaquePixel(at(i / 255)));
    return { at, pixels, hasGround: name !== "value" };
  });
}

/**
 * @param {string} name
 * @param {number[]} ground
 * @returns {ColourMap["at"]}
 */
function mapped(name, ground) {
  const side = luminance(ground) > 0.4 ? "light" : "dark";
  const blues = [ground, ...BLUES[side].map(channels)];
  if (name === "share") return (share) => between(blues, share);
  if (name === "sign") {
    const stops = [...blues.slice(1).reverse(), ground, ...ORANGES[side].map(channels)];
    return (share) => between(stops, share);
  }
  return viridis;
}

/**
 * @param {number[][]} stops
 * @param {number} share
 */
function between(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const at = Math.min(stops.length - 2, Math.floor(place));
  return stops[at].map((low, k) => Math.round(low + (stops[at + 1][k] - low) * (place - at)));
}

/** @param {string} hex */
function channels(hex) {
  return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
}
