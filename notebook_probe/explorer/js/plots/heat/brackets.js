/** Names of rows that are thinner than text: a bracket over each module that holds several. */

const LEAST_PX = 13; // a bracket with its name

/**
 * `{ from, to, name }` of rows `from` to `to` - 1: of the deepest modules that there is room for.
 * @param {string[]} rows
 * @param {number} rowHeight
 */
export function brackets(rows, rowHeight) {
  const least = Math.ceil(LEAST_PX / rowHeight);
  const whole = { from: 0, to: rows.length, name: "" };
  return merged(split(rows, whole, 1, least), least);
}

/**
 * @param {string[]} rows
 * @param {RowGroup} group
 * @param {number} depth
 * @param {number} least
 * @returns {RowGroup[]}
 */
function split(rows, group, depth, least) {
  /** @type {RowGroup[]} */
  const parts = [];
  for (let row = group.from; row < group.to; row++) {
    const name = rows[row].split(".").slice(0, depth).join(".");
    const last = parts.at(-1);
    if (last?.name === name) last.to = row + 1;
    else parts.push({ from: row, to: row + 1, name });
  }
  if (depth === 1) return parts.flatMap((part) => split(rows, part, 2, least));
  const fit = parts.length > 1 && parts.every((part) => part.to - part.from >= least);
  const deeper = parts.length === 1 && parts[0].name !== group.name;
  return fit || deeper ? parts.flatMap((part) => split(rows, part, depth + 1, least)) : [group];
}

/**
 * Neighbours that are too thin by themselves share one.
 * @param {RowGroup[]} groups
 * @param {number} least
 */
function merged(groups, least) {
  /** @type {RowGroup[]} */
  const found = [];
  for (const group of groups) {
    const last = found.at(-1);
    if (last && last.to - last.from < least) found[found.length - 1] = joined(last, group);
    else found.push(group);
  }
  const [last, before] = [found.at(-1), found.at(-2)];
  if (before && last && last.to - last.from < least) found.splice(-2, 2, joined(before, last));
  return found;
}

/**
 * @param {RowGroup} one
 * @param {RowGroup} other
 * @returns {RowGroup}
 */
function joined(one, other) {
  const [first, last] = [one.first ?? one.name, other.last ?? other.name];
  const isPair = !one.first && !other.first;
  const name = isPair ? `${first}, ${last}` : `${first} … ${last}`;
  return { from: one.from, to: other.to, name, first, last };
}
