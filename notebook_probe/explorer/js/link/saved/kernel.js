/**
 * What answers a panel that has no kernel: it says what a kernel would, from what was saved. To the
 * panel it is the model of a widget.
 */

import { decodeHeat, decodeLines } from "../frames.js";
import { codeOf } from "./code.js";
import { csvOf, pictureOf } from "./files.js";
import { createSavedLines } from "./lines.js";
import { lookAt } from "./looks.js";
import { createPieces } from "./pieces.js";

const VERSION = 1;
/** @type {["graph", string]} */
const GRAPH = ["graph", "the graph of the network"]; // kind and name of its piece
const NO_GRAPH = "No graph of the network was saved here.";
const NO_MAP = {
  type: "heat",
  rows: [],
  columns: 0,
  first_step: 0,
  last_step: -1,
  end_step: -1,
  before: [],
  low: null,
  high: null,
  log: true,
  colours: "value",
};

/**
 * @param {SavedPage} saved
 * @param {Pick<PanelParts, "root" | "state" | "fail">} parts
 * @returns {WidgetView}
 */
export function createSavedKernel({ first, ...packed }, { root, state, fail }) {
  const model = first.find((one) => one.type === "model");
  const saved = first.find((one) => one.type === "saved");
  const begun = first.find((one) => one.type === "selection");
  const status = first.find((one) => one.type === "status");
  if (!model || !saved || !begun) throw new Error("what was saved has no model, or no selection");
  const pieces = createPieces(packed);
  const linesOf = createSavedLines({ pieces, saved, begun, recorded: status?.recorded ?? {} });
  /** @type {Array<(message: object, buffers: Buffers) => void>} */
  let views = [];
  /** @type {PanelSelection} */
  let selection = begun;
  let seq = 0;
  /** @type {string | null} */
  let shownHome = null;

  /**
   * @param {object} message
   * @param {Buffers} [buffers]
   */
  function say(message, buffers = []) {
    for (const receive of views) receive({ ...message, v: VERSION, seq: (seq += 1) }, buffers);
  }

  /** @type {Record<string, (message: any) => unknown>} */
  const answers = {
    hello() {
      say(saved); // the others are read in its light
      for (const message of first) if (message !== saved) say(message);
      say({ type: "graph", revision: Number(pieces.has(...GRAPH)), why: NO_GRAPH });
      return draw();
    },
    /** @param {SelectionMessage} wanted */
    selection(wanted) {
      selection = wanted;
      say(wanted);
      return draw();
    },
    /** @param {ShowLook} wanted */
    async show_look(wanted) {
      const { message, buffers } = await lookAt(wanted, pieces);
      say(message, buffers);
    },
    async show_graph() {
      const graph = await pieces.read(...GRAPH);
      if (graph) say(graph.message);
    },
    /** @param {ExportClick} click */
    async export({ kind }) {
      const { buffer, ...file } = await (files[kind] ?? files.record)();
      say({ type: "exported", ...file }, buffer ? [buffer] : []);
    },
  };

  async function draw() {
    const wanted = selection;
    const [home, lines] = await Promise.all([homeOf(wanted.home), linesOf(wanted)]);
    if (wanted !== selection) return; // something else was picked meanwhile
    if (wanted.home !== shownHome) {
      state.heatPicture = null; // the tree's swatches are cut from it, of this quantity or of none
      say(home.message, home.buffers);
      state.emit("picture");
    }
    shownHome = wanted.home;
    say(lines.message, lines.buffers);
    return drawLeft(wanted);
  }

  /**
   * The line that was left for a branch, as far as it was saved.
   * @param {PanelSelection} selection
   */
  async function drawLeft({ home }) {
    const found = await Promise.all([pieces.read("left_lines", ""), pieces.read("left_heat", home)]);
    for (const frame of found) if (frame) say(frame.message, frame.buffers);
  }

  /** @param {string} quantity */
  async function homeOf(quantity) {
    const found = (await pieces.read("heat", quantity)) ?? (await pieces.read("vectors", quantity));
    const nothing = [0, 1, 2, 3].map(() => new DataView(new ArrayBuffer(0)));
    return found ?? { message: { ...NO_MAP, quantity }, buffers: nothing };
  }

  const name = model.name.replace(/[^\w.-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "") || "run";
  /** @type {Record<string, () => Promise<SavedFile>>} */
  const files = {
    async png() {
      const buffer = await pictureOf(root, [model.name, selection.home].filter(Boolean).join(" · "));
      return { filename: `${name}.png`, mime: "image/png", buffer };
    },
    async csv() {
      const frame = await pieces.read("heat", selection.home);
      const heat = frame && decodeHeat(frame.message, frame.buffers);
      const { message, buffers } = await linesOf({ ...selection, x_axis: "step" });
      const overSteps = /** @type {LinesFrame} */ (/** @type {unknown} */ (message));
      const text = csvOf({ lines: decodeLines(overSteps, buffers), heat });
      const note = `the saved columns, not every step, as ${name}-columns.csv`;
      return { filename: `${name}-columns.csv`, mime: "text/csv", buffer: new TextEncoder().encode(text), note };
    },
    async code() {
      const log = { heat: state.heat?.log ?? true };
      const { templates, code_axes: axes } = saved;
      const text = codeOf({ templates, axes, location: model.location, selection, log, lines: state.lines });
      return { filename: `${name}.py`, mime: "text/x-python", text };
    },
    async record() {
      return { filename: "", mime: "", error: `it is made from the full record: ${saved.open}` };
    },
  };

  return {
    on: (_, receive) => void views.push(receive),
    off: (_, receive) => (views = views.filter((one) => one !== receive)),
    /** @param {{ type: string }} message */
    send: (message) => void Promise.resolve().then(() => answers[message.type]?.(message)).catch(fail),
    get: () => undefined,
  };
}
