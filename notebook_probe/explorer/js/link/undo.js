/** Changes of what is looked at, to be taken back and made again. */

const MOST = 100;
const TOGETHER_MS = 600; // changes of the same kind within this are one: a zoom by the wheel, a slider

/** @typedef {{ before: Partial<PanelSelection>, after: Partial<PanelSelection>, at: number }} ViewChange */

/** @type {Partial<Record<keyof PanelSelection, string>>} */
const WORDS = {
  home: "quantity",
  window: "zoom",
  charts: "charts",
  series: "series",
  chosen_colors: "color",
  y_limits: "limits",
  smooth: "smoothing",
  rows: "rows",
  folds: "rows",
  others: "compared runs",
  ratio_to: "ratio",
};

export function createUndo() {
  /** @type {ViewChange[]} */
  let done = [];
  /** @type {ViewChange[]} */
  let undone = [];

  return {
    /**
     * Note a change that is about to be made.
     * @param {PanelSelection} selection
     * @param {Partial<PanelSelection>} patch
     */
    note(selection, patch) {
      const names = changedNames(selection, patch);
      if (!names.length) return;
      const [before, after] = [picked(selection, names), picked({ ...selection, ...patch }, names)];
      const last = done[done.length - 1];
      const now = Date.now();
      if (last && !undone.length && now - last.at < TOGETHER_MS && haveSameNames(last.after, after)) {
        Object.assign(last, { after, at: now });
        return;
      }
      done = [...done.slice(1 - MOST), { before, after, at: now }];
      undone = [];
    },
    /** What takes the last change back; null without one. */
    undo() {
      const last = done.pop();
      if (last) undone.push(last);
      return last?.before ?? null;
    },
    /** What makes the last one again that was taken back. */
    redo() {
      const last = undone.pop();
      if (last) done.push({ ...last, at: 0 });
      return last?.after ?? null;
    },
    /** What would be taken back, and made again, in words; "" for nothing. */
    words: () => ({ undo: wordsOf(done[done.length - 1]), redo: wordsOf(undone[undone.length - 1]) }),
  };
}

/**
 * @param {PanelSelection} selection
 * @param {Partial<PanelSelection>} patch
 */
function changedNames(selection, patch) {
  const names = /** @type {Array<keyof PanelSelection>} */ (Object.keys(patch));
  return names.filter((name) => JSON.stringify(patch[name]) !== JSON.stringify(selection[name]));
}

/**
 * @param {PanelSelection} selection
 * @param {Array<keyof PanelSelection>} names
 * @returns {Partial<PanelSelection>}
 */
function picked(selection, names) {
  return Object.fromEntries(names.map((name) => [name, selection[name]]));
}

/**
 * @param {object} one
 * @param {object} other
 */
function haveSameNames(one, other) {
  return JSON.stringify(Object.keys(one)) === JSON.stringify(Object.keys(other));
}

/** @param {ViewChange | undefined} change */
function wordsOf(change) {
  if (!change) return "";
  const names = /** @type {Array<keyof PanelSelection>} */ (Object.keys(change.after));
  const known = names.map((name) => WORDS[name] ?? "scale");
  // Charts bring their series along.
  return known.includes("charts") ? "charts" : [...new Set(known)].join(", ");
}
