/** The graph of the network: in place of the heat map, built when it is asked for. */

import { element, setAttribute, setGreyed, setHidden, setText } from "../../dom.js";
import { hasEnded } from "../../state.js";
import { createTicket } from "../ticket.js";
import { createGraphView } from "./graph_view.js";

const NEVER = "The graph was not built before the run ended. Next time press g, or call run.graph(), while it is open.";

/**
 * What holds it is `nbp-with-graph` then: the heat map goes on unseen, since the colours are its own.
 * @param {PanelParts} parts
 */
export function createGraph(parts) {
  const { state, link, signal } = parts;
  const word = element("button", {
    class: "nbp-option",
    type: "button",
    "data-action": "graph",
    "aria-pressed": "false",
  });
  const words = element("p", { role: "status" });
  const build = element(
    "button",
    { class: "nbp-main", type: "button", "data-action": "build-graph" },
    "Build the graph",
  );
  const ticket = createTicket(parts);
  const note = element("div", { class: "nbp-graph-note" }, words, build, ticket.el);
  const view = createGraphView(parts);
  const el = element("div", { class: "nbp-graph", hidden: "" }, view.el, note);
  let isShown = false;
  let shown = 0; // revision of the graph that is drawn
  let asked = 0; // and of that which was asked for
  let broken = ""; // what is wrong with the one that came

  word.addEventListener("click", toggle, { signal });
  build.addEventListener("click", order, { signal });
  for (const topic of ["graph", "status", "model"]) state.on(topic, refresh);
  state.on("shown_graph", arrived);

  function toggle() {
    isShown = !isShown;
    refresh();
    if (isShown && shown) view.focus();
  }

  function order() {
    if (build.getAttribute("aria-disabled") !== "true") ticket.follow([link.ask("build_graph", {})]);
  }

  function arrived() {
    const { shown_graph: message } = state.parts;
    if (!message || message.revision === shown) return;
    broken = message.error;
    if (!broken) {
      shown = message.revision;
      view.show(message);
    }
    refresh();
  }

  function refresh() {
    const { revision, why } = state.parts.graph;
    setHidden(el, !isShown);
    el.parentElement?.classList.toggle("nbp-with-graph", isShown);
    setText(word, isShown ? "‹ heat map" : "graph");
    setAttribute(word, "aria-pressed", isShown);
    setAttribute(word, "title", isShown ? "Back to modules over steps (g)" : "The graph of the network (g)");
    if (isShown && revision && revision !== asked) {
      asked = revision;
      link.send("show_graph", { view: link.view });
    }
    setHidden(view.el, !shown);
    setHidden(note, Boolean(shown));
    const isOver = state.model.live && hasEnded(state.status);
    setText(words, broken || (revision ? "Waiting for the graph." : isOver ? NEVER : why));
    setHidden(build, !state.model.live || Boolean(revision) || isOver);
    setGreyed(build, state.status.can.build_graph ?? "");
    ticket.describe();
  }

  refresh();
  return { el, word, toggle };
}
