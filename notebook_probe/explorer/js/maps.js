/** Values of maps by keys that are there, or are put there when they are first asked for. */

/**
 * The value of a key that is there.
 * @template Key, Value
 * @param {{ get(key: Key): Value | undefined }} map
 * @param {Key} key
 * @returns {Value}
 */
export function valueAt(map, key) {
  const value = map.get(key);
  if (value === undefined) throw new Error(`${key} is unknown`);
  return value;
}

/**
 * The value of a key, made first where there is none.
 * @template Key, Value
 * @param {{ get(key: Key): Value | undefined, set(key: Key, value: Value): unknown }} map
 * @param {Key} key
 * @param {() => Value} make
 * @returns {Value}
 */
export function valueOr(map, key, make) {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}
