/** Colours bound to series as the kernel binds them: those it gave out stay. */

const N_COLOURS = 7;

export function createColours(given) {
  const bound = new Map(given.map(([module, quantity, colour]) => [keyOf([module, quantity]), colour]));
  return {
    /** Of the `k`-th of these series. */
    of(series, k) {
      const key = keyOf(series[k]);
      if (!bound.has(key)) bound.set(key, free(bound, series.map(keyOf)));
      return bound.get(key);
    },
  };
}

const keyOf = ([module, quantity]) => `${module}\n${quantity}`;

/** A colour nobody ever had, while there is one; then the first that is not on the screen. */
function free(bound, drawn) {
  const ever = new Set(bound.values());
  for (let colour = 0; colour < N_COLOURS; colour++) if (!ever.has(colour)) return colour;
  const shown = new Set(drawn.map((key) => bound.get(key)));
  let colour = 0;
  while (shown.has(colour)) colour += 1;
  return colour;
}
