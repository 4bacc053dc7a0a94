/** Short names of what is drawn together. */

/**
 * Paths -> the shortest end of each that differs from all others: "2.attn", "3.attn".
 * @param {string[]} paths
 */
export function uniqueEnds(paths) {
  const all = [...new Set(paths)].map((path) => path.split("."));
  const ends = all.map((parts) => {
    let keep = 1;
    const isShared = () => all.some((other) => other !== parts && sameEnd(parts, other, keep));
    /** @type {(place: number) => boolean} */
    const isNumber = (place) => /^\d+$/.test(parts.at(-place) ?? "");
    const says = () => !isShared() && !isNumber(keep + 1) && (keep > 1 || !isNumber(1));
    while (keep < parts.length && !says()) keep += 1;
    return /** @type {[string, string]} */ ([parts.join("."), parts.slice(-keep).join(".")]);
  });
  return new Map(ends);
}

/**
 * @param {string[]} one
 * @param {string[]} other
 * @param {number} n
 */
function sameEnd(one, other, n) {
  return one.slice(-n).join(".") === other.slice(-n).join(".");
}
