/** Positions of the modules' pictures: an enlarged one is tall, the others have at least 9 pixels. */

import { lineOf } from "./shown_values.js";

const GAP_PX = 3;
const LEAST_PX = 9;
const TALLEST_PX = 30;
const ENLARGED_SHARE = 0.5;

/**
 * `[{ row, top, bottom }]` of those from `first` on that have room between two heights; `enlarged` is
 * the place of the tall one, or -1.
 * @param {number} n
 * @param {number} enlarged
 * @param {number} first
 * @param {number} top
 * @param {number} bottom
 */
export function rowPlaces(n, enlarged, first, top, bottom) {
  const room = bottom - top;
  const others = enlarged < 0 ? n : n - 1;
  const spare = room - others * (TALLEST_PX + GAP_PX);
  const tall = enlarged < 0 ? 0 : Math.max(60, room * ENLARGED_SHARE, spare);
  const each = (room - tall) / Math.max(1, others) - GAP_PX;
  const most = enlarged < 0 ? Infinity : TALLEST_PX;
  const height = Math.min(most, Math.max(LEAST_PX, each));
  /** @type {RowPlace[]} */
  const places = [];
  let y = top;
  for (let row = first; row < n; row++) {
    const high = row === enlarged ? tall - GAP_PX : height;
    if (y + high > bottom + 0.5) break;
    places.push({ row, top: y, bottom: y + high });
    y += high + GAP_PX;
  }
  return places;
}

/**
 * `{ row, element }` at a height, or null between the pictures.
 * @param {DecodedVectors} frame
 * @param {RowPlace[]} places
 * @param {number} y
 */
export function elementAt(frame, places, y) {
  const place = places.find(({ top, bottom }) => y >= top && y <= bottom);
  if (!place) return null;
  const row = frame.rows[place.row];
  const share = (y - place.top) / (place.bottom - place.top);
  const line = Math.min(row.n - 1, Math.floor(share * row.n));
  return { row: place.row, element: lineOf(frame, row, line) };
}
