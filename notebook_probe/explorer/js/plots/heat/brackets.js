/** Names of rows that are thinner than text: a bracket over each module that holds several. */

const LEAST_PX = 13; // a bracket with its name

/** `{ from, to, name }` of rows `from` to `to` - 1: of the deepest modules that there is room for. */
export function brackets(rows, rowHeight) {
  const least = Math.ceil(LEAST_PX / rowHeight);
  const whole = { from: 0, to: rows.length, name: "" };
  return merged(split(rows, whole, 1, least), least);
}

function split(rows, group, depth, least) {
  const parts = [];
  for (let row = group.from; row < group.to; row++) {
    const name = rows[row].split(".").slice(0, depth).join(".");
    if (parts.at(-1)?.name === name) parts.at(-1).to = row + 1;
    else parts.push({ from: row, to: row + 1, name });
  }
  if (depth === 1) return parts.flatMap((part) => split(rows, part, 2, least));
  const fit = parts.length > 1 && parts.every((part) => part.to - part.from >= least);
  const deeper = parts.length === 1 && parts[0].name !== group.name;
  return fit || deeper ? parts.flatMap((part) => split(rows, part, depth + 1, least)) : [group];
}

/** Neighbours that are too thin by themselves share one. */
function merged(groups, least) {
  const found = [];
  for (const group of groups) {
    const last = found.at(-1);
    const thin = (one) => one.to - one.from < least;
    if (last && thin(last)) found[found.length - 1] = joined(last, group);
    else found.push(group);
  }
  const [last, before] = [found.at(-1), found.at(-2)];
  if (before && last.to - last.from < least) found.splice(-2, 2, joined(before, last));
  return found;
}

function joined(one, other) {
  const [first, last] = [one.first ?? one.name, other.last ?? other.name];
  const isPair = !one.first && !other.first;
  const name = isPair ? `${first}, ${last}` : `${first} … ${last}`;
  return { from: one.from, to: other.to, name, first, last };
}
