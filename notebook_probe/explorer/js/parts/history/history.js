/** The history below the heat map: the checkpoints of a loop as diamonds, each with the way back. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { bytes, duration, grouped, significant } from "../../format.js";

const NEXT = { ArrowRight: 1, ArrowLeft: -1 };

export function createHistory({ state, dialogs, canvas, signal }) {
  const line = element("i", { class: "nbp-history-line", "aria-hidden": "true" });
  const marks = element("span", { class: "nbp-history-marks", role: "group", "aria-label": "Checkpoints" });
  const name = element("span", { class: "nbp-history-name nbp-soft" }, "history");
  const count = element("span", { class: "nbp-history-count nbp-soft" });
  const el = element("div", { class: "nbp-history", hidden: "" }, name, line, marks, count);
  let known = "";

  for (const topic of ["history", "painted", "selection", "status"]) state.on(topic, refresh);
  marks.addEventListener("keydown", pressed, { signal });

  function refresh() {
    const { checkpoints } = state.parts.history;
    setHidden(el, !checkpoints.length);
    if (!checkpoints.length || !canvas.dataset.box || !canvas.dataset.axis) return;
    const key = JSON.stringify([checkpoints, canvas.dataset.box, canvas.dataset.axis, state.status.step]);
    if (key === known) return;
    known = key;
    const [left, , right] = JSON.parse(canvas.dataset.box);
    const [low, high] = JSON.parse(canvas.dataset.axis);
    const x = (step) => left + ((right - left) * (step - low)) / (high - low);
    const end = Math.min(right, Math.max(left, x(state.status.step)));
    line.style.left = `${left}px`;
    line.style.width = `${end - left}px`;
    name.style.width = `${left - 8}px`;
    setText(count, checkpoints.length === 1 ? "1 checkpoint" : `${grouped(checkpoints.length)} checkpoints`);
    const shown = checkpoints.filter(({ step }) => step >= low && step <= high);
    show(shown, x);
    count.style.left = `${right + 10}px`;
    setHidden(count, count.offsetWidth > el.clientWidth - right - 12);
  }

  /** Those that stay keep their nodes, and the focus with them. */
  function show(checkpoints, x) {
    const there = new Map([...marks.children].map((node) => [node.dataset.step, node]));
    const nodes = checkpoints.map((one, k) => {
      const node = there.get(String(one.step)) ?? createMark(one.step);
      node.style.left = `${x(one.step)}px`;
      node.classList.toggle("nbp-gone", one.gone);
      node.tabIndex = k === checkpoints.length - 1 ? 0 : -1;
      setAttribute(node, "title", titleOf(one));
      setAttribute(node, "aria-label", titleOf(one));
      return node;
    });
    const same = nodes.length === marks.children.length && nodes.every((node, k) => node === marks.children[k]);
    if (!same) marks.replaceChildren(...nodes);
  }

  function createMark(step) {
    const node = element("button", {
      type: "button",
      class: "nbp-diamond",
      "data-step": step,
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
    });
    node.addEventListener("click", () => open(node, step), { signal });
    return node;
  }

  function pressed(event) {
    const way = NEXT[event.key];
    if (!way) return;
    event.preventDefault();
    event.stopPropagation();
    const nodes = [...marks.children];
    nodes[nodes.indexOf(document.activeElement) + way]?.focus();
  }

  function open(anchor, step) {
    const one = state.parts.history.checkpoints.find((row) => row.step === step);
    if (!one) return;
    state.cursor = { step, row: null, from: "history" };
    state.emit("cursor");
    dialogs.open({ anchor, label: `Back to step ${grouped(step)}`, content: contentOf(one) });
  }

  function contentOf(one) {
    const age = (Date.now() - one.time_ms) / 1000;
    const loss = one.loss === null ? "" : ` · loss ${significant(one.loss)}`;
    const facts = `checkpoint ${duration(Math.max(0, age))} ago · ${bytes(one.nbytes)}${loss}`;
    const steps = Math.max(0, state.status.step - one.step);
    return element(
      "div",
      { class: "nbp-sections nbp-back" },
      element(
        "header",
        {},
        element("h3", {}, `Back to step ${grouped(one.step)}`),
        element("span", { class: "nbp-soft" }, facts),
      ),
      element("section", {}, ...(one.gone ? goneWords(one) : wayBack(one, steps))),
    );
  }

  return { el };
}

function wayBack(one, steps) {
  return [
    element(
      "p",
      {},
      "Weights, optimizer, scheduler, random numbers and the order of the data as they were. " +
        `What was recorded after ${grouped(one.step)} stays, as a branch: ${grouped(steps)} steps. ` +
        "Once the loop has stopped, in a cell:",
    ),
    element("pre", {}, `run = loop.rewind(${one.step}, probes="default")`),
  ];
}

function goneWords(one) {
  const removed = `the checkpoint of step ${grouped(one.step)} was removed`;
  const other = "loop.rewind takes the newest one before it and trains up to the step again";
  return [element("p", {}, `${removed}; ${other}`)];
}

function titleOf({ step, gone, nbytes }) {
  if (gone) return `the checkpoint of step ${grouped(step)} was removed`;
  return `checkpoint of step ${grouped(step)}, ${bytes(nbytes)}: back to it`;
}
