/** One view of the panel: puts the parts together, and takes all of them away again. */

import { createAttach } from "./attach.js";
import { createBar } from "./bar.js";
import { element, setAttribute, setHidden, setText } from "./dom.js";
import { createEmpty } from "./empty.js";
import { createFoot } from "./foot.js";
import { createHeatView } from "./heatview.js";
import { createHome } from "./home.js";
import { createKeyboard } from "./keyboard.js";
import { createLineView } from "./lineview.js";
import { createLink } from "./link.js";
import { createNotice } from "./notice.js";
import { createSelection } from "./selection.js";
import { createSeries } from "./series.js";
import { createState } from "./state.js";
import { createTheme } from "./theme.js";
import { createTree } from "./treeview.js";

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
  const link = createLink({ model, root, state, fail, signal });
  const selection = createSelection(state, link.send, signal);
  const parts = { root, state, theme, link, selection, fail, signal };

  const bar = createBar(parts);
  const tree = createTree(parts);
  const attach = createAttach(parts);
  const heat = createHeatView(parts);
  const lines = createLineView(parts);
  const empty = createEmpty({ ...parts, attach });
  createKeyboard({ ...parts, tree, attach, bar });

  const views = element(
    "div",
    { class: "nbp-views" },
    createHome(parts).el,
    heat.el,
    createSeries(parts).el,
    lines.el,
    empty.el,
  );
  const left = element("div", { class: "nbp-left" }, tree.el, attach.el);
  root.append(
    trouble,
    bar.el,
    createNotice(parts).el,
    element("div", { class: "nbp-body" }, left, views),
    createFoot(parts).el,
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

  return () => {
    life.abort();
    root.remove();
  };
}

export default { render };
