/** The run's name in the bar: it opens the list of runs, and says how many are drawn beside it. */

import { element, setAttribute, setText } from "../../dom.js";
import { runName } from "./names.js";
import { createRunList } from "./run_list.js";

const TITLE = "Compare with other runs (r)";

/** @param {PanelParts} parts */
export function createCompare(parts) {
  const { state, dialogs, link, signal } = parts;
  const name = element("b", { class: "nbp-run-name" });
  const beside = element("span", { class: "nbp-soft nbp-beside" });
  const el = element(
    "button",
    {
      class: "nbp-run nbp-bar-word",
      type: "button",
      "data-action": "runs",
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
    },
    name,
    beside,
    element("i", { class: "nbp-chevron", "aria-hidden": "true" }),
  );
  /** @type {ReturnType<typeof createRunList> | null} */
  let list = null;

  el.addEventListener("click", open, { signal });
  for (const topic of ["model", "selection", "compare", "saved"]) state.on(topic, refresh);
  for (const topic of ["status", "selection", "compare", "theme"]) state.on(topic, () => list?.refresh());

  function open() {
    if (state.parts.saved) return; // there is nobody to ask for other runs
    list = createRunList(parts);
    dialogs.open({ anchor: el, label: "Runs", content: list.el, closed });
    if (!dialogs.isOpenAt(el)) return;
    link.send("list_runs", {});
    list.refresh();
  }

  function closed() {
    list?.close();
    list = null;
  }

  function refresh() {
    const { others } = state.selection;
    setText(name, state.model.name);
    setText(beside, others.length ? `+${others.length}` : "");
    const names = others.map((run) => runName(state, run)).join(", ");
    const all = names ? `${state.model.name}, compared with ${names}` : state.model.name;
    const { saved } = state.parts;
    setAttribute(el, "title", saved ? all : `${all}\n${TITLE}`);
    setAttribute(el, "aria-label", saved ? all : `${all}: compare with other runs`);
  }

  refresh();
  return { el, open: () => el.click() };
}
