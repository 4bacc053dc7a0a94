/** The box in which is typed which rows are wanted: words, or a condition that the kernel reads. */

import { element, setAttribute, setText } from "../../js/dom.js";
import { grouped } from "../../js/format.js";

/**
 * @typedef {{
 *   rows: TableRows,
 *   ask: (text: string) => void,
 *   arrange: (change: () => void, how: { stays: boolean }) => void,
 *   keep: () => void,
 *   signal: AbortSignal,
 * }} FilterParts
 */
/** @typedef {{ rows?: number[] | null, words?: string }} RowsWanted */

const WAIT_MS = 120; // after the last key
const WORD = /^[\p{L}\p{N}_./-]*$/u; // what can be no condition

/**
 * `ask(text)` has the kernel read it; `arrange(change, { stays })` makes a change of which rows are
 * wanted, `stays` where they are those of the same text as before; `keep()` follows a new text.
 * @param {FilterParts} parts
 */
export function createFilter({ rows, ask, arrange, keep, signal }) {
  const box = element("input", {
    type: "search",
    "aria-label": "Filter: words, or a condition",
    placeholder: "Filter: words, or loss.last < 0.1 and state == 'finished'",
    title: "Words that a row has, or a condition on columns: and, or, not, ==, !=, <, <=, >, >=, in",
    spellcheck: "false",
    autocomplete: "off",
  });
  const said = element("span", { class: "nbp-runs-said", role: "status" });
  const el = element("div", { class: "nbp-runs-filter" }, box, said);
  let timer = 0;
  let problem = "";
  let applied = "";

  box.addEventListener("input", typed, { signal });
  box.addEventListener(
    "keydown",
    (event) => {
      event.stopPropagation(); // the notebook has keys of its own
      if (event.key !== "Escape" || !box.value) return;
      box.value = "";
      typed();
    },
    { signal },
  );
  signal.addEventListener("abort", () => clearTimeout(timer));

  function typed() {
    const text = box.value.trim();
    clearTimeout(timer);
    if (WORD.test(text)) apply({ words: text });
    else timer = setTimeout(() => ask(text), WAIT_MS);
  }

  /** @param {RowsWanted} what */
  function apply(what) {
    const text = box.value.trim();
    const stays = text === applied;
    [problem, applied] = ["", text];
    arrange(() => rows.filter(what), { stays });
    if (!stays) keep();
  }

  function refresh() {
    const [n, all] = [rows.order.length, rows.runs.length];
    const count = n === all ? `${grouped(all)} ${all === 1 ? "run" : "runs"}` : `${grouped(n)} of ${grouped(all)} runs`;
    setText(said, problem || count);
    said.classList.toggle("nbp-bad", Boolean(problem));
    setAttribute(said, "title", problem || null);
    setAttribute(box, "aria-invalid", problem ? "true" : null);
  }

  return {
    el,
    refresh,
    text: () => box.value.trim(),
    /** @param {string} text */
    restore(text) {
      box.value = text;
      typed();
    },
    /**
     * What the kernel says of the text; it may be another one by now.
     * @param {FilteredMessage} message
     */
    answered({ text, kind, rows: wanted, problem: why }) {
      if (text !== box.value.trim()) return;
      if (kind === "condition") return apply({ rows: wanted });
      if (kind === "words") return apply({ words: text });
      problem = why;
      return refresh();
    },
    /** Rows tell other values: those that are wanted may be others. */
    again() {
      const text = box.value.trim();
      if (!WORD.test(text)) ask(text);
    },
  };
}
