/** Suggestions for a search without results. */

/** @typedef {{ path: string, name: string, kind: string }} NamedRow */

const MOST = 3;

/**
 * "Nothing is called conv9; near: conv1, conv2": names of modules and classes with few letters changed.
 * @param {NamedRow[]} modules
 * @param {string} query
 */
export function nothingFound(modules, query) {
  const near = nearNames(modules, query);
  return `Nothing is called ${query}${near.length ? `; near: ${near.join(", ")}` : ""}`;
}

/**
 * @param {NamedRow[]} modules
 * @param {string} query
 */
function nearNames(modules, query) {
  const wanted = query.toLowerCase();
  const most = Math.max(1, Math.floor(wanted.length / 3));
  const names = new Set(modules.flatMap(({ path, name, kind }) => [name, path, kind]));
  /** @type {Array<[number, string]>} */
  const found = [];
  for (const name of names) {
    const distance = lettersChanged(wanted, name.toLowerCase(), most);
    if (distance <= most) found.push([distance, name]);
  }
  found.sort(([one], [other]) => one - other); // stable: the order of the model
  return found.slice(0, MOST).map(([, name]) => name);
}

/**
 * Letters to change, add or leave out to make one of the other; above `most` it only says so.
 * @param {string} one
 * @param {string} other
 * @param {number} most
 */
function lettersChanged(one, other, most) {
  if (Math.abs(one.length - other.length) > most) return most + 1;
  let above = Array.from({ length: other.length + 1 }, (_, k) => k);
  for (let row = 1; row <= one.length; row++) {
    const line = [row];
    for (let k = 1; k <= other.length; k++) {
      const changed = above[k - 1] + Number(one[row - 1] !== other[k - 1]);
      line.push(Math.min(changed, above[k] + 1, line[k - 1] + 1));
    }
    if (Math.min(...line) > most) return most + 1;
    above = line;
  }
  return above[other.length];
}
