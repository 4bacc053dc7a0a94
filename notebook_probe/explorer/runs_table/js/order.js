/** In which order rows stand: numbers, then text, then NaN, then what is missing, either way down. */

const [NUMBER, TEXT, NAN, MISSING] = [0, 1, 2, 3];

/** Up, down, and back to the order in which the runs came. */
export function nextSort(sorted, name) {
  if (sorted.name !== name) return { name, down: false };
  return sorted.down ? { name: "", down: false } : { name, down: true };
}

/** The rows in the order of a column's keys; equal ones stay as they stood. */
export function orderedBy(rows, keys, down) {
  const kinds = [[], [], [], []];
  for (const row of rows) kinds[kindOf(keys[row])].push(row);
  const sign = down ? -1 : 1;
  kinds[NUMBER].sort((one, other) => sign * (keys[one] - keys[other]));
  kinds[TEXT].sort((one, other) => sign * compared(keys[one], keys[other]));
  return kinds.flat();
}

function kindOf(key) {
  if (key === null || key === undefined) return MISSING;
  if (key === false) return NAN;
  return typeof key === "number" ? NUMBER : TEXT;
}

function compared(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}
