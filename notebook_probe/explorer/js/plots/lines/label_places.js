/** Places of labels beside line ends: near to their line, and none on another. */

/**
 * Positions -> positions with at least `spacing` between them within [low, high], order kept.
 * @param {number[]} positions
 * @param {number} spacing
 * @param {number} low
 * @param {number} high
 */
export function spread(positions, spacing, low, high) {
  const order = positions.map((_, k) => k).sort((a, b) => positions[a] - positions[b]);
  /** @type {number[]} */
  const placed = [];
  let floor = low;
  for (const k of order) {
    placed[k] = Math.max(positions[k], floor);
    floor = placed[k] + spacing;
  }
  let ceiling = high;
  for (const k of order.reverse()) {
    placed[k] = Math.min(placed[k], ceiling);
    ceiling = placed[k] - spacing;
  }
  return placed;
}

/**
 * Of more ends than there is room for, those that lie outermost, above and below.
 * @template {{ y: number }} End
 * @param {End[]} ends
 * @param {number} room
 */
export function outermost(ends, room) {
  if (ends.length <= room) return ends;
  const order = [...ends].sort((a, b) => a.y - b.y);
  const above = Math.ceil(room / 2);
  return [...order.slice(0, above), ...order.slice(order.length - (room - above))];
}
