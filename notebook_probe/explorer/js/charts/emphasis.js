/** Emphasis of the line that is pointed at: it is highlighted everywhere, and the others are dimmed. */

/** @typedef {Pick<PanelState, "emphasis" | "charts" | "emit">} EmphasisState */

/**
 * A series, or with a null for the quantity every line of a module; null for nothing.
 * @param {EmphasisState} state
 * @param {Emphasis | null} wanted
 */
export function emphasize(state, wanted) {
  const lines = state.charts.flatMap(({ prepared }) => prepared);
  const isDrawn = wanted !== null && lines.length > 1 && lines.some((one) => isMeant(wanted, one));
  const next = isDrawn ? wanted : null;
  const { emphasis } = state;
  if (next?.module === emphasis?.module && next?.quantity === emphasis?.quantity) return;
  state.emphasis = next;
  state.emit("emphasis");
}

/**
 * Whether something else is pointed at.
 * @param {Pick<PanelState, "emphasis">} state
 * @param {{ module: string, quantity: string }} series
 */
export function isDimmed({ emphasis }, series) {
  return emphasis !== null && !isMeant(emphasis, series);
}

/**
 * Mark what stands for a series: brought out, dimmed, or neither.
 * @param {Element} node
 * @param {Pick<PanelState, "emphasis">} state
 * @param {{ module: string, quantity: string }} series
 */
export function bringOut(node, state, series) {
  const isDim = isDimmed(state, series);
  node.classList.toggle("nbp-dimmed", isDim);
  node.classList.toggle("nbp-brought", state.emphasis !== null && !isDim);
}

/**
 * @param {Emphasis} emphasis
 * @param {{ module: string, quantity: string }} series
 */
function isMeant({ module, quantity }, series) {
  return module === series.module && (quantity === null || quantity === series.quantity);
}
