/** One view of the panel: puts the parts together, and takes all of them away. */

import { createFormulaProblems } from "./charts/formula_problems.js";
import { createAttach } from "./controls/attach.js";
import { createDockButton } from "./controls/dock_button.js";
import { createCompiledNotice } from "./controls/compiled_notice.js";
import { createEmptyState } from "./controls/empty_state.js";
import { createFooter } from "./controls/footer.js";
import { createHeatOptions } from "./controls/heat_options.js";
import { createKeyboard } from "./controls/keyboard.js";
import { createLineOptions } from "./controls/line_options.js";
import { createTopBar } from "./controls/top_bar.js";
import { createDialogs } from "./dialogs/dialog.js";
import { createDrawer } from "./dialogs/drawer.js";
import { element, setAttribute, setHidden, setText } from "./dom.js";
import { createDock } from "./link/dock.js";
import { createKernelLink } from "./link/kernel_link.js";
import { isLeftAlone, keepInNotebook } from "./link/notebook.js";
import { createSelection } from "./link/selection.js";
import { createSavedKernel } from "./link/saved/kernel.js";
import { openPackage } from "./link/saved/loader.js";
import { createAlerts } from "./parts/alerts/alerts.js";
import { createBreaks } from "./parts/breaks/breaks.js";
import { createRaised } from "./parts/breaks/raised.js";
import { createCompare } from "./parts/compare/compare.js";
import { createParting } from "./parts/compare/parting.js";
import { createExamination } from "./parts/examination/examination.js";
import { createGraph } from "./parts/graph/graph.js";
import { createHints } from "./parts/hints/hints.js";
import { createHistory } from "./parts/history/history.js";
import { followLeft } from "./parts/history/left.js";
import { createKnobs } from "./parts/knobs/knobs.js";
import { createBatch } from "./parts/looks/batch.js";
import { createLooks } from "./parts/looks/looks.js";
import { createOutput } from "./parts/output/output.js";
import { createSavedNotice } from "./parts/saved/notice.js";
import { createAttached } from "./parts/probes/attached.js";
import { createCost } from "./parts/probes/cost.js";
import { createHeatMap } from "./plots/heat/heat_map.js";
import { createLinePlot } from "./plots/lines/line_plot.js";
import { createVectorMap } from "./plots/vectors/vector_map.js";
import { createTheme } from "./plots/theme.js";
import { followWhole } from "./plots/whole.js";
import { createState } from "./state.js";
import { createTree } from "./tree/tree.js";
import { createViews } from "./views/views.js";

/** @param {{ model: WidgetView, el: HTMLElement }} widget */
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
  /** @type {Fail} */
  const fail = (problem) => {
    setText(trouble, problem instanceof Error ? `Error in the panel: ${problem.message}` : String(problem));
    setHidden(trouble, false);
  };

  const theme = createTheme(root, state, signal);
  const kernel = model.saved ? createSavedKernel(model.saved, { root, state, fail }) : model;
  const link = createKernelLink({ model: kernel, root, state, fail, signal });
  const selection = createSelection(state, link.send, signal);
  const dialogs = createDialogs({ root, signal });
  const drawer = createDrawer({ signal });
  const parts = { root, state, theme, link, selection, dialogs, drawer, fail, signal };

  followLeft(state);
  followWhole(state);
  const attached = createAttached(parts);
  const probes = createCost(parts, attached.open);
  const breaks = createBreaks(parts);
  const dock = createDockButton({ ...parts, dock: createDock({ model: kernel, ...parts }) });
  const compare = createCompare(parts);
  const heat = createHeatMap(parts);
  const vectors = createVectorMap(parts);
  const graph = createGraph(parts);
  const heatOptions = createHeatOptions({ ...parts, graph });
  const history = createHistory({ ...parts, canvas: heat.canvas });
  // One element for what a look hides: each of these shows and hides itself, too.
  const map = element("div", { class: "nbp-map" }, heatOptions.el, graph.el, heat.el, vectors.el, history.el);
  const looks = createLooks({ ...parts, instead: map });
  createBatch({ ...parts, looks });
  const knobs = createKnobs(parts);
  const bar = createTopBar({ ...parts, compare, knobs, probes, breaks, look: looks.inBar, dock });
  const tree = createTree({ ...parts, attached });
  const attach = createAttach({ ...parts, look: looks });
  const lines = createLinePlot(parts);
  const empty = createEmptyState({ ...parts, attach });
  const alerts = createAlerts(parts);
  const output = createOutput(parts);
  const examination = createExamination(parts);
  const { pins } = lines;
  createKeyboard({ ...parts, tree, attach, attached, bar, compare, breaks, alerts, looks, graph, dock, pins });

  const views = element(
    "div",
    { class: "nbp-views" },
    map,
    looks.el,
    createLineOptions(parts).el,
    lines.bar,
    lines.el,
    createFormulaProblems(parts).el,
    lines.pins.el,
    empty.el,
  );
  const left = element("div", { class: "nbp-left" }, tree.el, attach.el);
  root.append(
    trouble,
    bar.el,
    createSavedNotice(parts).el,
    createRaised(parts).el,
    createCompiledNotice(parts).el,
    createHints(parts).el,
    element("div", { class: "nbp-body" }, left, views),
    createViews(parts).el,
    createFooter({ ...parts, alerts, looks, examination, output, parting: createParting(parts) }).el,
    drawer.el,
  );
  el.append(root);
  state.emit("dock"); // where it stands is known from here on

  const describe = () => {
    setAttribute(root, "data-step", state.status.step);
    setAttribute(root, "data-state", state.status.state);
    setAttribute(root, "data-route", state.status.route);
    setAttribute(root, "data-frames", state.frames);
    const times = [heat, vectors, lines].map((plot) => Number(plot.canvas.dataset.drawMs ?? 0));
    setAttribute(root, "data-draw-ms", Math.max(...times));
    setHidden(attach.el, !state.model.live);
  };
  for (const topic of ["status", "model", "painted"]) state.on(topic, describe);
  describe();
  link.start(selection.receive);
  let end = () => {
    life.abort();
    root.remove();
  };
  if (!model.saved) {
    keepInNotebook(model, signal);
    standIn().catch(() => {}); // not JupyterLab: this view stays as it is
  }

  /** A view without a kernel gives way to one of what was saved. */
  async function standIn() {
    if (!(await isLeftAlone(model)) || signal.aborted) return;
    end();
    end = await openPackage(model.get?.("_saved") ?? "", el);
  }

  return () => end();
}

export default { render };
