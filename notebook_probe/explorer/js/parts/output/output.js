/** Link in the footer, and the last printed lines in the drawer below it. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";

const AT_END_PX = 4; // so near to the end of the lines new ones are followed
const NOT_KEPT = "What the training prints is not kept yet. The last 200 lines are stored with the record.";

/** @param {PanelParts} parts */
export function createOutput({ state, link, drawer, signal }) {
  const word = element(
    "button",
    {
      class: "nbp-link nbp-output-word",
      type: "button",
      "data-action": "output",
      "aria-expanded": "false",
      title: "The last lines that the training has printed",
      hidden: "",
    },
    "Output",
  );
  const about = element("span", { class: "nbp-soft", role: "status" });
  const keep = element("button", { type: "button", "data-action": "keep-output" }, "Keep the output");
  const lines = element("div", { class: "nbp-output-lines", role: "log", tabindex: "0", "aria-label": "Last lines" });
  const el = element("div", { class: "nbp-output" }, element("div", { class: "nbp-output-head" }, about, keep), lines);
  /** @type {Array<[number, string]>} */
  let shown = [];

  word.addEventListener("click", toggle, { signal });
  keep.addEventListener("click", () => link.send("keep_output", {}), { signal });
  for (const topic of ["output", "model"]) state.on(topic, refresh);

  function toggle() {
    drawer.open({ anchor: word, label: "Output", content: el, closed: () => link.send("show_output", { on: false }) });
    if (!drawer.isOpenAt(word)) return;
    link.send("show_output", { on: true });
    refresh();
    lines.scrollTop = lines.scrollHeight;
  }

  function refresh() {
    const { live, kept } = state.parts.output;
    setHidden(word, !(live || kept));
    setAttribute(word, "data-kept", kept);
    if (!drawer.isOpenAt(word)) return;
    setHidden(keep, kept || !live);
    setText(about, aboutText());
    fill();
  }

  function aboutText() {
    const { kept, problem, lines: all } = state.parts.output;
    if (!kept) return NOT_KEPT;
    const n = all.length === 1 ? "the last line" : `the last ${grouped(all.length)} lines`;
    return [all.length ? n : "Nothing is printed yet.", problem].filter(Boolean).join(" · ");
  }

  /** What is read stays where it is: only who is at the end sees the end of what is new. */
  function fill() {
    const { lines: all } = state.parts.output;
    if (all === shown) return;
    shown = all;
    const isAtEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight <= AT_END_PX;
    lines.replaceChildren(...all.map(lineOf));
    setHidden(lines, !all.length);
    if (isAtEnd) lines.scrollTop = lines.scrollHeight;
  }

  refresh();
  return { word };
}

/** @param {[number, string]} line */
function lineOf([step, text]) {
  const at = element("span", { class: "nbp-output-step", title: `after ${grouped(step)} steps` }, grouped(step));
  return element("div", { class: "nbp-output-line" }, at, element("span", {}, text));
}
