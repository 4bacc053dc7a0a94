/** The foot while runs are compared: where the first module parts, and the drawer of all that do. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { modulesText } from "../../format.js";
import { createPartedList } from "./parted_list.js";
import { partingOf, refusedText } from "./partings.js";

/** @param {PanelParts} parts */
export function createParting(parts) {
  const { state, drawer, signal } = parts;
  const words = element("span", { class: "nbp-cut", role: "status" });
  const number = element("span");
  const count = element(
    "button",
    { class: "nbp-alert-count", type: "button", "data-action": "partings", "aria-expanded": "false" },
    number,
    element("i", { class: "nbp-chevron", "aria-hidden": "true" }),
  );
  const el = element("div", { class: "nbp-parting", hidden: "" }, words, count);
  const list = createPartedList(parts);

  count.addEventListener("click", toggle, { signal });
  for (const topic of ["parting", "ratio", "selection", "compare", "theme", "model"]) state.on(topic, refresh);

  function toggle() {
    drawer.open({ anchor: count, label: "Where the runs diverge", content: list.el });
    list.fill();
  }

  function refresh() {
    const told = partingOf(state);
    const why = refusedText(state);
    setHidden(el, !told && !why);
    setHidden(count, !told);
    const text = [told?.text, why].filter(Boolean).join("; ");
    setText(words, text);
    setAttribute(words, "title", text);
    words.classList.toggle("nbp-bad", !told && Boolean(why));
    const n = told?.found.length ?? 0;
    setText(number, n ? modulesText(n) : "where");
    if (!drawer.isOpenAt(count)) return;
    if (told) list.fill();
    else drawer.close();
  }

  refresh();
  return { el };
}
