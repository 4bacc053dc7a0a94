/** Chips on one line: names give way to twelve letters, then chips to a number. */

const LEAST_LETTERS = 12;
const MOST_LETTERS = 34;

const LETTER_PX = 7.3; // of the chips' monospaced 12 px
const CHROME_PX = 54; // swatch, padding and the cross of a chip
const GAP_PX = 6;
const REST_PX = 48; // "+12"

/**
 * For names of so many letters in `room` pixels: `{ letters }` of each chip that has a place.
 * @param {number[]} lengths
 * @param {number} room
 */
export function fitChips(lengths, room) {
  const wanted = lengths.map((n) => Math.min(n, MOST_LETTERS));
  /** @type {(letters: number) => number} */
  const width = (letters) => CHROME_PX + GAP_PX + letters * LETTER_PX;
  /** @type {(most: number, n: number) => number} */
  const total = (most, n) =>
    wanted.slice(0, n).reduce((sum, letters) => sum + width(Math.min(letters, most)), 0);
  let n = lengths.length;
  while (n > 0 && total(LEAST_LETTERS, n) > room - (n < lengths.length ? REST_PX : 0)) n -= 1;
  const left = room - (n < lengths.length ? REST_PX : 0);
  let most = MOST_LETTERS;
  while (most > LEAST_LETTERS && total(most, n) > left) most -= 1;
  return { letters: wanted.slice(0, n).map((letters) => Math.min(letters, most)) };
}
