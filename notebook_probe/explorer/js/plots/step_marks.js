/** Marks on the step axes: what was done and what was found; the heavier hides what is near it. */

import { element } from "../dom.js";
import { grouped } from "../format.js";
import { markedAlerts } from "../parts/alerts/both.js";

const NEAR_PX = 5;
const TALL_PX = 8;
const MOST_TEXTS = 4;
const FAINT = 0.45; // of the line that was left

/** @typedef {(context: CanvasRenderingContext2D, px: number, bottom: number, colours: Colours) => void} PaintMark */

/**
 * What stands below an axis: the heavier hides the lighter. A new kind of mark is a row here.
 * @type {Record<string, { weight: number, colour: keyof Colours, paint: PaintMark }>}
 */
const KINDS = {
  done: { weight: 1, colour: "brand", paint: paintTick },
  checkpoint: { weight: 2, colour: "brand", paint: paintDiamond },
  look: { weight: 3, colour: "brand", paint: square(false) },
  shown_look: { weight: 3.2, colour: "brand", paint: square(true) },
  warning: { weight: 4, colour: "amber", paint: triangle(false) },
  severe: { weight: 5, colour: "bad", paint: triangle(true) },
};

const OWN = new Set(["checkpoint", "look"]); // events with a mark of their own

/**
 * { step, x, kind, text, left } of all there is, `x` as the lines have it: their axis may be time.
 * @param {PanelState} state
 * @param {StepMapping} mapping
 * @returns {StepMark[]}
 */
export function stepMarks(state, mapping) {
  const { events, x0 } = state.lines ?? { events: [], x0: 0 };
  const found = markedAlerts(state).map(({ step, severity, rule, text, left }) => {
    return { step, x: mapping.x(step), kind: severity, text: `${left ? "before: " : ""}${rule} at ${text}`, left };
  });
  const done = events.map(([at, kind, text]) => {
    const x = at + x0;
    const step = Math.round(mapping.step(x));
    return { step, x, kind: kindOf(kind, step, state), text: text || kind };
  });
  return [...found, ...done];
}

/**
 * @param {string} kind
 * @param {number} step
 * @param {Pick<PanelState, "looked">} state
 */
function kindOf(kind, step, { looked }) {
  if (kind === "look" && step === looked) return "shown_look";
  return OWN.has(kind) ? kind : "done";
}

/**
 * Marks that are drawn, { px, step, kind, left, texts }, each with the texts of those that it hides.
 * @param {StepMark[]} marks
 * @param {(mark: StepMark) => number} place
 * @param {Box} box
 */
export function placeMarks(marks, place, { left, right }) {
  /** @type {(mark: StepMark) => number} */
  const weight = ({ kind, left }) => KINDS[kind].weight - (left ? 0.5 : 0);
  const byWeight = [...marks].sort((one, other) => weight(other) - weight(one));
  /** @type {PlacedMark[]} */
  const placed = [];
  for (const mark of byWeight) {
    const px = place(mark);
    if (!(px >= left - 0.5 && px <= right + 0.5)) continue;
    const over = placed.find((one) => Math.abs(one.px - px) < NEAR_PX);
    if (over) over.texts.push(mark.text);
    else placed.push({ px, step: mark.step, kind: mark.kind, left: mark.left, texts: [mark.text] });
  }
  return placed;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {PlacedMark[]} placed
 * @param {number} bottom
 * @param {Colours} colours
 */
export function paintMarks(context, placed, bottom, colours) {
  for (const { px, kind, left } of placed) {
    const { colour, paint } = KINDS[kind];
    context.globalAlpha = left ? FAINT : 1;
    context.strokeStyle = context.fillStyle = colours[colour];
    paint(context, px, bottom, colours);
  }
  context.globalAlpha = 1;
}

/**
 * The mark under a pixel, or null.
 * @param {PlacedMark[]} placed
 * @param {number} x
 * @param {number} y
 * @param {number} bottom
 */
export function markAt(placed, x, y, bottom) {
  if (y < bottom - 3 || y > bottom + TALL_PX + 4) return null;
  const near = placed.filter(({ px }) => Math.abs(px - x) <= NEAR_PX + 1);
  return near.sort((one, other) => Math.abs(one.px - x) - Math.abs(other.px - x))[0] ?? null;
}

/**
 * What it says when it is pointed at.
 * @param {PlacedMark} mark
 */
export function markTip({ step, texts }) {
  const rows = texts.slice(0, MOST_TEXTS).map((text) => element("div", { class: "nbp-tip-mark" }, text));
  if (texts.length > MOST_TEXTS) rows.push(element("div", {}, `+ ${texts.length - MOST_TEXTS} more`));
  return [element("div", { class: "nbp-tip-head" }, `step ${grouped(step)}`), ...rows];
}

/**
 * A click on a mark: the cursor stays at its step, and who has more to show of it is told.
 * @param {PanelState} state
 * @param {PlacedMark} mark
 */
export function pressMark(state, mark) {
  pinCursor(state, mark.step);
  state.pressed = mark;
  state.emit("pressed");
}

/**
 * The cursor stays at a step until it is sent elsewhere.
 * @param {PanelState} state
 * @param {number} step
 * @param {Partial<Cursor>} [more]
 */
export function pinCursor(state, step, more = {}) {
  state.pinned = { step, row: null, from: "pin", ...more };
  state.cursor = state.pinned;
  state.emit("cursor");
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} px
 * @param {number} bottom
 */
function paintTick(context, px, bottom) {
  const x = Math.round(px) + 0.5;
  context.lineWidth = 1.4;
  context.beginPath();
  context.moveTo(x, bottom - 4);
  context.lineTo(x, bottom + 5);
  context.stroke();
}

/**
 * @param {boolean} filled
 * @returns {PaintMark}
 */
function square(filled) {
  return (context, px, bottom, colours) => {
    const fill = filled ? context.strokeStyle : colours.ground;
    outlined(context, fill, () => context.rect(px - 3.5, bottom + 1.5, 7, 7));
  };
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} px
 * @param {number} bottom
 * @param {Colours} colours
 */
function paintDiamond(context, px, bottom, colours) {
  outlined(context, colours.ground, () => {
    context.moveTo(px, bottom + 0.5);
    context.lineTo(px + 4.5, bottom + 5);
    context.lineTo(px, bottom + 9.5);
    context.lineTo(px - 4.5, bottom + 5);
    context.closePath();
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {CanvasRenderingContext2D["fillStyle"]} fill
 * @param {() => void} shape
 */
function outlined(context, fill, shape) {
  context.lineWidth = 1.4;
  context.lineJoin = "round";
  context.fillStyle = fill;
  context.beginPath();
  shape();
  context.fill();
  context.stroke();
}

/**
 * @param {boolean} filled
 * @returns {PaintMark}
 */
function triangle(filled) {
  return (context, px, bottom, colours) => {
    context.lineWidth = 1.4;
    context.lineJoin = "round";
    context.beginPath();
    context.moveTo(px, bottom + 1.5);
    context.lineTo(px + 4.5, bottom + TALL_PX + 1);
    context.lineTo(px - 4.5, bottom + TALL_PX + 1);
    context.closePath();
    if (!filled) context.fillStyle = colours.ground;
    context.fill();
    context.stroke();
  };
}
