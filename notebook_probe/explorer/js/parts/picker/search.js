/** Finding a quantity by its name, what it says of itself, its formula, or another tool's name. */

/** @type {Array<(one: QuantityRow) => string>} */
const FIELDS = [
  (one) => one.name,
  (one) => one.aliases.join(" "),
  (one) => one.summary,
  (one) => one.formula,
];
const MOST_NEAR = 3;
const ALIKE = 0.3;

/**
 * Those that match, the best first: by name, by alias, by sentence, by formula.
 * @param {QuantityRow[]} quantities
 * @param {string} query
 */
export function searchQuantities(quantities, query) {
  const text = query.toLowerCase();
  const words = text.split(/\s+/);
  const ranked = quantities.flatMap((one) => {
    const rank = rankOf(one, text, words);
    return rank === null ? [] : [{ one, rank }];
  });
  return ranked.sort((a, b) => a.rank - b.rank).map(({ one }) => one);
}

/**
 * @param {QuantityRow} one
 * @param {string} text
 * @param {string[]} words
 */
function rankOf(one, text, words) {
  const name = one.name.toLowerCase();
  if (name === text) return 0;
  if (name.startsWith(text)) return 1;
  const at = FIELDS.findIndex((read) => read(one).toLowerCase().includes(text));
  if (at >= 0) return 2 + at;
  const all = FIELDS.map((read) => read(one)).join(" ").toLowerCase();
  return words.every((word) => all.includes(word)) ? 2 + FIELDS.length : null;
}

/**
 * The names that come near a word, by the pairs of letters that they share.
 * @param {string[]} names
 * @param {string} query
 */
export function nearNames(names, query) {
  const wanted = pairs(query);
  const scored = names.map((name) => ({ name, score: likeness(wanted, name) }));
  const near = scored.filter(({ score }) => score >= ALIKE).sort((a, b) => b.score - a.score);
  return near.slice(0, MOST_NEAR).map(({ name }) => name);
}

/**
 * Of a name, or of the part of it that is most like the word.
 * @param {Set<string>} wanted
 * @param {string} name
 */
function likeness(wanted, name) {
  return Math.max(...[name, ...name.split(/[_\W]+/)].map((part) => shared(wanted, pairs(part))));
}

/**
 * @param {Set<string>} a
 * @param {Set<string>} b
 */
function shared(a, b) {
  const common = [...a].filter((pair) => b.has(pair)).length;
  return a.size + b.size ? (2 * common) / (a.size + b.size) : 0;
}

/**
 * Of "dead": "^d", "de", "ea", "ad", "d$".
 * @param {string} word
 */
function pairs(word) {
  const marked = `^${word.toLowerCase()}$`;
  return new Set(Array.from({ length: marked.length - 1 }, (_, k) => marked.slice(k, k + 2)));
}
