/** One run of the list: a tick draws it beside this one. */

import { createMark, setSeverity } from "../alerts/mark.js";
import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { grouped, significant } from "../../format.js";
import { begunText } from "./names.js";
import { paintRunLine } from "./run_line.js";

/**
 * `ticked(on)` is called by the tick; this run itself has none.
 * @param {{ own?: boolean, ticked?: (on: boolean) => void, signal: AbortSignal }} options
 */
export function createRunRow({ own, ticked, signal }) {
  const box = element("input", { type: "checkbox" });
  const tick = own ? element("i", { class: "nbp-dot", "aria-hidden": "true" }) : box;
  const name = element(own ? "b" : "span", { class: "nbp-cut" });
  const line = element("canvas", { class: "nbp-run-line", "aria-hidden": "true" });
  const begun = element("span", { class: "nbp-soft nbp-begun" });
  const steps = element("span", { class: "nbp-run-number" });
  const mark = createMark("severe");
  const value = element("span");
  const loss = element("span", { class: "nbp-run-number nbp-last" }, mark, value);
  const differs = element("span", { class: "nbp-cut nbp-differs" });
  const el = element(
    own ? "div" : "label",
    { class: own ? "nbp-run-row nbp-here" : "nbp-run-row" },
    tick, name, line, begun, steps, loss, differs,
  );
  if (!own) box.addEventListener("change", () => ticked?.(box.checked), { signal });

  return {
    el,
    tick,
    /**
     * `row` as the kernel tells it, or this run in the same words; `colour` is that of its line.
     * @param {ListedRun} row
     * @param {boolean} on
     * @param {string} colour
     */
    show(row, on, colour) {
      const unread = !row.problem && !row.steps && !row.begun_ms && !own;
      const lost = row.line.length > 0 && row.last === null;
      setText(name, row.name);
      setAttribute(name, "title", row.run);
      setText(begun, row.begun ?? begunText(row.begun_ms ?? 0));
      setText(steps, row.problem || unread ? "" : grouped(row.steps));
      setText(value, row.line.length ? significant(row.last) : "");
      setAttribute(loss, "title", row.scalar);
      loss.classList.toggle("nbp-bad", lost);
      setHidden(mark, !lost);
      if (lost) setSeverity(mark, "severe");
      const words = row.problem || (unread ? "reading …" : row.differs || "–");
      setText(differs, words);
      setAttribute(differs, "title", words);
      differs.classList.toggle("nbp-bad", Boolean(row.problem));
      differs.classList.toggle("nbp-soft", !row.problem);
      paintRunLine(line, row.line, colour);
      if (own) return;
      box.checked = on;
      box.disabled = Boolean(row.problem) && !on;
      setAttribute(tick, "data-run", row.run);
      setAttribute(tick, "aria-label", `Compare with ${row.name}`);
    },
  };
}
