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
 * @param {PanelState} state
 */
export function heatPicture(frame, state, ground) {
  const log = isLogHeat(state);
  const cells = shownCells(frame, state);
  const known = frame.low !== null && (!log || frame.low > 0);
  const [low, high] = known ? [frame.low, frame.high] : [0.1, 1];
  const scale = valueScale(low, high, log, 0, 255, 6);
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

let leftImage = { of: null, heat: null, image: null };

/**
 * The columns of the run that was left, in the colours of this one; null without any.
 * @param {PanelState} state
 */
export function leftPicture(frame, state) {
  const heat = frame.ratio ? null : leftHeat(state, frame);
  const { values, map } = state.heatPicture;
  if (!heat || !values) return null;
  if (leftImage.of !== state.heatPicture || leftImage.heat !== heat) {
    const image = heatImage(heat, values, shownCells(heat, state), map.pixels);
    leftImage = { of: state.heatPicture, heat, image };
  }
  return { frame: heat, image: leftImage.image };
}

/**
 * @param {ShownHeat} frame
 * @param {Pick<PanelState, "selection">} state
 */
function shownCells(frame, { selection }) {
  return selection.cells === "mean" ? frame.mean : frame.maximum;
}

/** @param {PanelState} state */
export function isCurrent(picture, frame, state, ground) {
  if (picture?.frame !== frame || picture.log !== isLogHeat(state)) return false;
  return picture.cells === shownCells(frame, state) && picture.ground === ground;
}
