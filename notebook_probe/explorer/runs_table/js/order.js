/** In which order rows stand: numbers, then text, then NaN, then what is missing, either way down. */

/** @typedef {{ name: string, down: boolean }} SortedBy */

const [NUMBER, TEXT, NAN, MISSING] = [0, 1, 2, 3];

/**
 * Up, down, and back to the order in which the runs came.
 * @param {SortedBy} sorted
 * @param {string} name
 */
export function nextSort(sorted, name) {
  if (sorted.name !== name) return { name, down: false };
  return sorted.down ? { name: "", down: false } : { name, down: true };
}

/**
 * The rows in the order of a column's keys; equal ones stay as they stood.
 * @param {number[]} rows
 * @param {ColumnKey[]} keys
 * @param {boolean} down
 */
export function orderedBy(rows, keys, down) {
  /** @type {number[][]} */
  const kinds = [[], [], [], []];
  for (const row of rows) kinds[kindOf(keys[row])].push(row);
  const sign = down ? -1 : 1;
  kinds[NUMBER].sort((one, other) => sign * (Number(keys[one]) - Number(keys[other])));
  kinds[TEXT].sort((one, other) => sign * compared(String(keys[one]), String(keys[other])));
  return kinds.flat();
}

/** @param {ColumnKey | undefined} key */
function kindOf(key) {
  if (key === null || key === undefined) return MISSING;
  if (key === false) return NAN;
  return typeof key === "number" ? NUMBER : TEXT;
}

/**
 * @param {string} one
 * @param {string} other
 */
function compared(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}
