/** The image of a heat map with its colours and scale: made once per frame and wish. */

import { apartTicks } from "../../parts/compare/ratio_frame.js";
import { leftHeat } from "../../parts/history/left.js";
import { isLogHeat } from "../../state.js";
import { rgbOf } from "../colour.js";
import { colourMap } from "../colour_maps.js";
import { valueScale } from "../scale.js";
import { heatImage } from "./paint.js";

/**
 * Image, colours and scale (0…255) of a frame; null values when nothing is on the scale.
 * @param {ShownHeat} frame
 * @param {PanelState} state
 * @param {string} ground
 * @returns {HeatPicture}
 */
export function heatPicture(frame, state, ground) {
  const log = isLogHeat(state);
  const cells = shownCells(frame, state);
  const { low, high } = frame;
  const known = low !== null && high !== null && (!log || low > 0);
  const scale = known ? valueScale(low, high, log, 0, 255, 6) : valueScale(0.1, 1, log, 0, 255, 6);
  const values = frame.ratio ? { ...scale, ticks: apartTicks(frame) } : scale;
  const map = colourMap(frame.colours, rgbOf(ground));
  const image = heatImage(frame, values, cells, map.pixels);
  /** @type {HeatPicture["placeOf"]} */
  const placeOf = (path) => {
    const row = frame.index.get(path);
    return row === undefined ? null : [row, 1];
  };
  return { image, map, values: known ? values : null, frame, log, cells, ground, placeOf };
}

/** @type {WeakMap<DecodedHeat, { of: HeatPicture, image: HTMLCanvasElement }>} */
const images = new WeakMap(); // of frames in the colours of another one's picture

/**
 * The columns of the run that was left, in the colours of this one; null without any.
 * @param {ShownHeat} frame
 * @param {PanelState} state
 * @param {HeatPicture} picture
 * @returns {LeftPicture | null}
 */
export function leftPicture(frame, state, picture) {
  const heat = frame.ratio ? null : leftHeat(state, frame);
  return heat && inColoursOf(picture, heat, state);
}

/**
 * All steps behind those of a window, where the axis shows more of them: the answer comes later.
 * @param {ShownHeat} frame
 * @param {PanelState} state
 * @param {HeatPicture} picture
 * @param {Axis} axis
 * @returns {LeftPicture | null}
 */
export function backPicture(frame, state, picture, { low, high }) {
  const heat = state.whole?.heat;
  const isWhole = frame.first_step <= low && frame.end_step + 1 >= high;
  if (!heat || isWhole || heat === frame || frame.ratio || heat.quantity !== frame.quantity) return null;
  if (heat.rows.join("\n") !== frame.rows.join("\n")) return null;
  return inColoursOf(picture, heat, state);
}

/**
 * @param {HeatPicture} picture
 * @param {DecodedHeat} heat
 * @param {PanelState} state
 * @returns {LeftPicture | null}
 */
function inColoursOf(picture, heat, state) {
  const { values, map } = picture;
  if (!values) return null;
  let made = images.get(heat);
  if (made?.of !== picture) {
    made = { of: picture, image: heatImage(heat, values, shownCells(heat, state), map.pixels) };
    images.set(heat, made);
  }
  return { frame: heat, image: made.image };
}

/**
 * @param {ShownHeat} frame
 * @param {Pick<PanelState, "selection">} state
 */
function shownCells(frame, { selection }) {
  return selection.cells === "mean" ? frame.mean : frame.maximum;
}

/**
 * @param {ShownPicture | null} picture
 * @param {ShownHeat} frame
 * @param {PanelState} state
 * @param {string} ground
 * @returns {picture is HeatPicture}
 */
export function isCurrent(picture, frame, state, ground) {
  if (!picture?.cells || picture.frame !== frame || picture.log !== isLogHeat(state)) return false;
  return picture.cells === shownCells(frame, state) && picture.ground === ground;
}
