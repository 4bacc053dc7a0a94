/** Step at which this run diverges from another, for the selected quantity. */

/**
 * The last answer of the kernel, where it is about what is shown; else null.
 * @param {Pick<PanelState, "parts" | "selection">} state
 */
export function partingOf({ parts, selection }) {
  const told = parts.parting;
  const current = told && told.quantity === selection.home && selection.others.includes(told.to);
  return current ? told : null;
}

/**
 * Module -> the step from which on it is far from the other; none for what is not asked now.
 * @param {PanelState} state
 */
export function partedSteps(state) {
  return new Map((partingOf(state)?.found ?? []).map(({ module, step }) => [module, step]));
}

/**
 * Why some of the others are not compared with, or not drawn; empty where all are.
 * @param {Pick<PanelState, "parts" | "selection">} state
 */
export function refusedText({ parts, selection }) {
  return selection.others
    .map((run) => parts.compare.refused[run])
    .filter(Boolean)
    .join("; ");
}
