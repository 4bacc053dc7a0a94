/** List next to Detach: quantities attached at the marked modules, and their state. */

import { element, setAttribute, setHidden, setText } from "../dom.js";
import { grouped } from "../format.js";
import { seriesName } from "../names.js";
import { probeText, probesText } from "../probes.js";
import { createPopover } from "./popover.js";

/** @param {Pick<PanelParts, "state" | "selection" | "signal">} parts */
export function createAttachedList({ state, selection, signal }) {
  const button = element("button", { type: "button", class: "nbp-here", "data-action": "here" });
  const { el } = createPopover({ button, search: "", items: probeItems, signal });
  for (const topic of ["status", "marked"]) state.on(topic, refresh);

  const rows = () => [...state.marked].flatMap((path) => state.probes.byModule.get(path) ?? []);

  function refresh() {
    const n = rows().length;
    setText(button, `${grouped(n)} attached`);
    const title = `${probesText(n)} at the marked modules: last value, cost, or why there is none`;
    setAttribute(button, "title", title);
    setAttribute(button, "aria-label", title);
    setHidden(el, !n);
  }

  function probeItems() {
    const alone = state.marked.size === 1;
    return rows().map((row) => ({
      text: alone ? row.quantity : seriesName(row.module, row.quantity),
      note: row.schedule,
      detail: probeText(row),
      data: { module: row.module, quantity: row.quantity },
      act: () => draw(row),
    }));
  }

  /** @param {ProbeRow} probe */
  function draw({ module, quantity }) {
    if (state.status.recorded[quantity]?.includes(module)) selection.add(module, quantity);
  }

  refresh();
  return { el };
}
