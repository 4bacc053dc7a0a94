/** The graph in the place of the heat map: what a click does, what is outlined, coloured and said. */

import { element, setAttribute, setHidden } from "../../dom.js";
import { exact, grouped } from "../../format.js";
import { heatFrame, hasSeries, unitsOf } from "../../state.js";
import { ratioName } from "../compare/names.js";
import { apartText } from "../compare/ratio_frame.js";
import { colouring } from "./colouring.js";
import { isOpenable } from "./folding/fold.js";
import { createHands } from "./hands.js";
import { createLegend } from "./legend.js";
import { networkOf } from "./folding/network.js";
import { outlined } from "./outlined.js";
import { createPlane } from "./plane.js";
import { around, searchNetwork, searchRows, whyNothing } from "./search.js";
import { boxLines, boxTip, placeTip } from "./tip.js";
import { createTools } from "./tools.js";
import { inTree } from "./words.js";

const ALONE = "Only the modules: their connections are not known";

/** @param {Pick<PanelParts, "state" | "theme" | "selection" | "fail" | "signal">} parts */
export function createGraphView({ state, theme, selection, fail, signal }) {
  /** @type {GraphNetwork | null} */
  let network = null;
  /** @type {SearchRow[]} */
  let rows = []; // what a search goes through
  /** @type {SearchRow[]} */
  let found = []; // of these, and which was gone to last
  let gone = -1;
  /** @type {GraphItem | null} */
  let pointed = null; // item under the pointer
  /** @type {[string, string] | null} */
  let drawn = null; // the series of the last click, [module, quantity]: the next one takes its place
  /** @type {PanelSelection["series"]} */
  let before = []; // series before a click: a double-click gives them back
  let own = false; // what is marked was marked here

  const plane = createPlane({ theme, look, fail, signal });
  const tools = createTools({ typed, next, zoom: plane.zoom, fit: plane.fit, signal });
  const legend = createLegend();
  const tip = element("div", { class: "nbp-tip nbp-graph-tip", hidden: "" });
  const how = element("div", { class: "nbp-graph-how", hidden: "" }, ALONE);
  const el = element("div", { class: "nbp-graph-drawn" }, plane.el, plane.overview, how, tools.el, legend.el, tip);
  createHands(plane, { choose, turn, draw, hover }, signal);
  for (const topic of ["picture", "cursor", "selection", "theme", "status"]) state.on(topic, plane.change);
  state.on("marked", follow);

  /**
   * What the boxes need at a drawing.
   * @param {GraphNetwork} network
   * @returns {GraphLook}
   */
  function look(network) {
    const valueOf = valuesNow();
    const marked = outlined(plane.layout(), { paths: [...state.marked].map((path) => path.split("[")[0]) });
    const searched = outlined(plane.layout(), { paths: pathsOf(found), nodes: nodesOf(found) });
    const lit = new Set([...marked.own, ...(pointed ? [pointed.key] : [])]);
    if (pointed) showHint(network, pointed, valueOf);
    return {
      marked: marked.own,
      holding: marked.holding,
      found: new Set([...searched.own, ...searched.holding]),
      lit,
      valueOf,
      labelOf: (item) => boxLines(network, item, told(item, valueOf)).join(", "),
    };
  }

  /**
   * Item -> what the heat map has of it now.
   * @returns {(item: GraphItem) => GraphValue | null}
   */
  function valuesNow() {
    const picture = state.heatPicture;
    const frame = heatFrame(state);
    const units = unitsOf(state.model, state.selection.home);
    /** @type {(value: number) => string} */
    const tell = (value) =>
      frame?.ratio ? `${apartText(value, frame.signed)} of ${ratioName(state)}` : exact(value, units);
    const step = state.cursor?.step ?? null;
    const colour = colouring(picture, step, { isMean: state.selection.cells === "mean", tell });
    const when = step === null ? "now" : `step ${grouped(step)}`;
    legend.show(picture?.cells ? picture : null, `${state.selection.home}, ${when}`);
    return (item) => (item.path === null ? null : colour(inTree(item.path)));
  }

  /** @type {(item: GraphItem, valueOf: (item: GraphItem) => GraphValue | null) => ToldValue} */
  const told = (item, valueOf) => ({ quantity: state.selection.home, value: valueOf(item) });

  /**
   * @param {GraphNetwork} network
   * @param {GraphItem} item
   * @param {(item: GraphItem) => GraphValue | null} valueOf
   */
  function showHint(network, item, valueOf) {
    placeTip(tip, plane.seenAt(item), plane.room, boxTip(network, item, told(item, valueOf)));
  }

  /** @param {GraphItem | null} item */
  function hover(item) {
    if (item === pointed) return;
    pointed = item;
    if (!item) setHidden(tip, true);
    plane.request();
  }

  /**
   * `second` marks the second click of a double-click, and a step of the keyboard.
   * @param {GraphItem} item
   * @param {boolean} second
   */
  function choose(item, second) {
    if (!network) return;
    plane.stand(item.key, false);
    own = true;
    const path = item.path ?? network.nodes[item.nodes[0]].module;
    state.marked = new Set([inTree(path)]);
    state.emit("reveal");
    state.emit("marked");
    own = false;
    if (!second) draw(item);
  }

  /**
   * Its series, in the place of the one of the click before.
   * @param {GraphItem} item
   */
  function draw(item) {
    before = state.selection.series;
    const { home } = state.selection;
    if (item.path === null) return;
    const module = inTree(item.path);
    if (!heatFrame(state)?.index?.has(module) || hasSeries(state.selection, module, home)) return;
    const rest = before.filter(([path, name]) => path !== drawn?.[0] || name !== drawn[1]);
    drawn = [module, home];
    selection.change({ series: [...rest, drawn] });
  }

  /**
   * @param {GraphItem} item
   * @param {boolean} [undo]
   */
  function turn(item, undo = false) {
    if (undo && state.selection.series !== before) selection.change({ series: before });
    if (!isOpenable(item)) return;
    hover(null);
    plane.turn([item.path], !item.isOpen, item.key);
    plane.stand(item.key, plane.boxes.contains(document.activeElement));
  }

  /** What was marked elsewhere comes into sight. */
  function follow() {
    plane.change();
    if (own || !network || !state.marked.size) return;
    const [path] = state.marked;
    const { own: boxes, holding } = outlined(plane.layout(), { paths: [path] });
    const [key] = [...boxes, ...holding];
    if (key) plane.reach(key);
  }

  /** @param {string} query */
  function typed(query) {
    found = query ? searchNetwork(rows, query) : [];
    gone = -1;
    const { own: boxes, holding } = outlined(plane.layout(), { paths: pathsOf(found), nodes: nodesOf(found) });
    const [key] = [...boxes, ...holding];
    if (key) plane.centre(key);
    plane.request();
    return { n: found.length, nothing: query && !found.length ? whyNothing(rows, query) : "" };
  }

  /** To the next one that was found, opening what is around it. */
  function next() {
    if (!found.length || !network) return;
    gone = (gone + 1) % found.length;
    const row = found[gone];
    plane.turn(around(network, row), true);
    const { own: boxes } = outlined(plane.layout(), { paths: pathsOf([row]), nodes: nodesOf([row]) });
    const [key] = boxes;
    const item = plane.itemOf(key);
    if (!item) return;
    plane.centre(key);
    choose(item, true);
  }

  return {
    el,
    request: plane.change,
    focus: () => plane.stand(plane.current(), true),
    /** @param {ShownGraph} message */
    show(message) {
      network = networkOf(message);
      rows = searchRows(network);
      found = [];
      tools.clear();
      setHidden(how, network.how !== "tree");
      setAttribute(how, "title", message.why);
      plane.show(network);
    },
  };
}

/** @param {SearchRow[]} rows */
function pathsOf(rows) {
  return rows.filter(({ node }) => node === null).map(({ path }) => path);
}

/** @param {SearchRow[]} rows */
function nodesOf(rows) {
  return rows.map(({ node }) => node).filter((node) => node !== null);
}
