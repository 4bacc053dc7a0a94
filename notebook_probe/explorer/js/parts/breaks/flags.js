/** At which modules a breakpoint is armed: their own, and all inside them. */

/**
 * { own, inside }: path -> what it pauses at, in words.
 * @param {BreakRow[]} rows
 * @param {PanelModel["byPath"]} byPath
 * @returns {Flags}
 */
export function flagsOf(rows, byPath) {
  const [own, inside] = [new Map(), new Map()];
  for (const { armed, quantity, module, text } of rows) {
    if (!armed || !quantity) continue;
    add(own, module, text);
    for (let row = byPath.get(module); row; row = row.above ?? undefined) add(inside, row.path, text);
  }
  return { own, inside };
}

/**
 * @param {Map<string, string[]>} flags
 * @param {string} path
 * @param {string} text
 */
function add(flags, path, text) {
  flags.set(path, [...(flags.get(path) ?? []), text]);
}
