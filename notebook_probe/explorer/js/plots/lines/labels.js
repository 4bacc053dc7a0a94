/** Labels beside line ends: as near to their line as they can be without touching each other. */

/** Positions -> positions with at least `spacing` between them within [low, high], order kept. */
export function spread(positions, spacing, low, high) {
  const order = positions.map((_, k) => k).sort((a, b) => positions[a] - positions[b]);
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
