/** The drawer: where they part, module by module; a click goes to module and step. */

import { element, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { shortList } from "../../probes.js";
import { showAlert } from "../alerts/show.js";
import { runName } from "./names.js";
import { createPartNumber } from "./part_number.js";
import { partingOf, refusedText } from "./partings.js";
import { frameOf } from "./ratio_frame.js";
import { paintStrip } from "./strip.js";

/** @type {Record<string, number>} */
const ARROWS = { ArrowDown: 1, ArrowUp: -1 };
const HEADS = ["module", "from step", "ratio there", "now"];

/** @param {PanelParts} parts */
export function createPartedList(parts) {
  const { state, selection, theme, signal } = parts;
  const quantity = element("code");
  const said = element("span", { class: "nbp-bad", role: "status" });
  const rest = element("span", { class: "nbp-parted-rest" });
  /** @type {(text: string) => void} */
  const say = (text) => setText(said, text);
  /** @type {(place: number) => (value: number) => void} */
  const change = (place) => (value) => {
    say("");
    const [far, rows] = state.selection.apart;
    selection.change({ apart: place ? [far, value] : [value, rows] });
  };
  const factor = createPartNumber({
    name: "factor",
    before: "further than ×",
    after: "",
    fits: (value) => Number.isFinite(value) && value > 1,
    refusal: "a number above 1 is needed",
    kept: change(0),
    said: say,
    signal,
  });
  const rows = createPartNumber({
    name: "rows",
    before: "apart for ",
    after: " rows",
    fits: (value) => Number.isInteger(value) && value > 0,
    refusal: "a whole number above 0 is needed",
    kept: change(1),
    said: say,
    signal,
  });
  const list = element("div", { class: "nbp-parted-rows", role: "list" });
  const whom = element("span", { class: "nbp-cut" });
  const heads = HEADS.map((text) => element("span", {}, text));
  const head = element("div", { class: "nbp-parted nbp-parted-heads nbp-soft" }, ...heads, whom, element("span"));
  const el = element(
    "div",
    { class: "nbp-parted-list" },
    element(
      "header",
      { role: "none" },
      element("b", {}, "Where they diverge"),
      element("span", { class: "nbp-soft" }, quantity, ", smoothed, ", factor.el, " ", rows.el),
      said,
      rest,
    ),
    head,
    list,
  );
  let known = "";

  list.addEventListener("click", clicked, { signal });
  list.addEventListener("keydown", pressed, { signal });

  /** @param {MouseEvent} event */
  function clicked(event) {
    go(event.target.closest("[data-module]"));
  }

  /** @param {HTMLElement | null} row */
  function go(row) {
    const one = partingOf(state)?.found.find(({ module }) => module === row?.dataset.module);
    if (one) showAlert({ modules: [one.module], quantities: [state.selection.home], step: one.step }, parts);
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const all = [...list.querySelectorAll("[data-module]")];
    const row = event.target.closest("[data-module]");
    const at = all.findIndex((one) => one === row);
    const by = ARROWS[event.key];
    if (event.key === "Enter") go(all[at] ?? null);
    else if (by) all[Math.min(Math.max(at + by, 0), all.length - 1)]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function fill() {
    const told = partingOf(state);
    if (!told) return;
    const { apart } = state.selection;
    factor.show(apart[0]);
    rows.show(apart[1]);
    setText(quantity, told.quantity);
    const other = state.selection.grouped ? "the group" : runName(state, told.to);
    setText(whom, `this run ÷ ${other}, ${state.selection.window ? "steps in view" : "all steps"}`);
    setText(rest, [restText(told), refusedText(state)].filter(Boolean).join("; "));
    setHidden(head, !told.found.length);
    const ratio = state.parts.ratio;
    const frame = ratio?.to === told.to && ratio.quantity === told.quantity ? frameOf(ratio) : null;
    const key = JSON.stringify(told.found);
    if (key !== known) {
      known = key;
      list.replaceChildren(...told.found.map(partedRow));
    }
    const colours = theme.read();
    told.found.forEach(({ module, step }, k) => {
      const strip = list.children[k].querySelector("canvas");
      if (strip) paintStrip(strip, frame, module, step, colours);
    });
  }

  return { el, fill };
}

/** @param {PartingMessage} told */
function restText({ text, found, lately, within, missing, bound }) {
  if (!found.length) return text;
  const stay = within.length > 1 ? "stay" : "stays";
  const same = within.length ? `${shortList(within)} ${stay} within ${bound}` : "";
  const late = lately?.length ? `diverging in the last rows: ${shortList(lately)}` : "";
  const gone = missing.length ? `not in both: ${shortList(missing)}` : "";
  return [late, same, gone].filter(Boolean).join("; ");
}

/**
 * @param {PartedRow} row
 * @param {number} place
 */
function partedRow({ module, step, there, now }, place) {
  const first = place ? [] : [element("span", { class: "nbp-tag" }, "first")];
  return element(
    "div",
    { class: "nbp-parted", role: "listitem", tabindex: place ? "-1" : "0", "data-module": module },
    element("span", { class: "nbp-cut", title: module }, element("code", {}, module), ...first),
    element("span", { class: "nbp-run-number" }, grouped(step)),
    element("span", { class: "nbp-run-number" }, there),
    element("b", { class: "nbp-run-number" }, now),
    element("canvas", { class: "nbp-strip", "aria-hidden": "true" }),
    element("button", { type: "button", class: "nbp-link", tabindex: "-1", "data-action": "show-parted" }, "show"),
  );
}
