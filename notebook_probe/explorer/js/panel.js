/** One view of the panel: puts the parts together, and takes all of them away. */

import { createAttach } from "./controls/attach.js";
import { createCompiledNotice } from "./controls/compiled_notice.js";
import { createEmptyState } from "./controls/empty_state.js";
import { createFooter } from "./controls/footer.js";
import { createHeatOptions } from "./controls/heat_options.js";
import { createKeyboard } from "./controls/keyboard.js";
import { createLineOptions } from "./controls/line_options.js";
import { createTopBar } from "./controls/top_bar.js";
import { element, setAttribute, setHidden, setText } from "./dom.js";
import { createKernelLink } from "./link/kernel_link.js";
import { keepInNotebook } from "./link/notebook.js";
import { createSelection } from "./link/selection.js";
import { createHeatMap } from "./plots/heat/heat_map.js";
import { createLinePlot } from "./plots/lines/line_plot.js";
import { createTheme } from "./plots/theme.js";
import { createState } from "./state.js";
import { createTree } from "./tree/tree.js";
import { createViews } from "./views/views.js";

function render({ model, el }) {
  const life = new AbortController(); // ends every listener, observer and timer of this view
  const { signal } = life;
  const root = element("div", {
    class: "nbp-panel",
    tabindex: "-1",
    role: "group",
    "aria-label": "notebook_probe",
  });
  const trouble = element("div", { class: "nbp-trouble", role: "alert", hidden: "" });
  const state = createState();
  const fail = (problem) => {
    setText(trouble, problem instanceof Error ? `The panel stumbled: ${problem.message}` : problem);
    setHidden(trouble, false);
  };

  const theme = createTheme(root, state, signal);
  const link = createKernelLink({ model, root, state, fail, signal });
  const selection = createSelection(state, link.send, signal);
  const parts = { root, state, theme, link, selection, fail, signal };

  const bar = createTopBar(parts);
  const tree = createTree(parts);
  const attach = createAttach(parts);
  const heat = createHeatMap(parts);
  const lines = createLinePlot(parts);
  const empty = createEmptyState({ ...parts, attach });
  createKeyboard({ ...parts, tree, attach, bar });

  const views = element(
    "div",
    { class: "nbp-views" },
    createHeatOptions(parts).el,
    heat.el,
    createLineOptions(parts).el,
    lines.el,
    empty.el,
  );
  const left = element("div", { class: "nbp-left" }, tree.el, attach.el);
  root.append(
    trouble,
    bar.el,
    createCompiledNotice(parts).el,
    element("div", { class: "nbp-body" }, left, views),
    createViews(parts).el,
    createFooter(parts).el,
  );
  el.append(root);

  const describe = () => {
    setAttribute(root, "data-step", state.status.step);
    setAttribute(root, "data-state", state.status.state);
    setAttribute(root, "data-route", state.status.route);
    setAttribute(root, "data-frames", state.frames);
    const times = [heat, lines].map((plot) => Number(plot.canvas.dataset.drawMs ?? 0));
    setAttribute(root, "data-draw-ms", Math.max(...times));
    setHidden(attach.el, !state.model.live);
  };
  for (const topic of ["status", "model", "painted"]) state.on(topic, describe);
  describe();
  link.start(selection.receive);
  keepInNotebook(model, signal);

  return () => {
    life.abort();
    root.remove();
  };
}

export default { render };
