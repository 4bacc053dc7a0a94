/** The alerts line by line, in bursts: what is hovered or has the focus is pointed at in the plots. */

import { element, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { burstWords, burstsOf } from "./bursts.js";
import { createAlertLine } from "./line.js";

const MOST_LINES = 200;

/** `about` stands at the right of the newest burst's head. */
export function createAlertList(parts, about) {
  const { state, signal } = parts;
  const list = element("div", { class: "nbp-alerts", role: "list" });
  const earlier = element("p", { class: "nbp-soft nbp-earlier", hidden: "" });
  const el = element("div", { class: "nbp-alerts-scroll" }, earlier, list);
  const lines = new Map(); // key of an alert -> its line
  const heads = new Map(); // key of a burst's first alert -> its head
  let pointed = null;
  let known = []; // what the lines were filled from

  const listen = (type, run) => list.addEventListener(type, run, { signal });
  listen("pointerover", (event) => point(lineOf(event.target)));
  listen("pointerleave", () => point(null));
  listen("focusin", (event) => focused(lineOf(event.target)));
  listen("focusout", () => point(null));
  listen("keydown", pressed);

  /** Only what is new is put in, so that what has the focus keeps it. */
  function fill() {
    const { alerts, status, model } = state;
    const facts = [alerts, model, status.recorded, status.attached, status.can.attach, state.parts.rules];
    if (known.length && facts.every((fact, k) => fact === known[k])) return;
    known = facts;
    const nodes = [];
    const bursts = burstsOf(alerts.slice(-MOST_LINES));
    for (const burst of bursts) {
      const head = kept(heads, keyOf(burst[0]), () => createHead());
      head.describe(burst);
      if (burst === bursts.at(-1)) head.el.append(about);
      nodes.push(head.el);
      for (const alert of burst) {
        const line = kept(lines, keyOf(alert), () => createAlertLine(alert, parts));
        line.describe(alert === burst[0] && burst.length > 1);
        nodes.push(line.el);
      }
    }
    arrange(list, nodes);
    for (const map of [lines, heads]) {
      for (const [key, one] of map) if (one.el.parentNode !== list) map.delete(key);
    }
    const n = alerts.length - MOST_LINES;
    setHidden(earlier, n <= 0);
    setText(earlier, `${grouped(Math.max(0, n))} earlier ones: run.alerts lists them all`);
  }

  function lineOf(node) {
    const el = node.closest?.(".nbp-alert");
    return el ? [...lines.values()].find((line) => line.el === el) : null;
  }

  /** Its step goes through both plots, its rows are outlined. */
  function point(line) {
    if (line === pointed) return;
    pointed = line;
    const { step, modules } = line?.alert ?? {};
    state.cursor = line ? { step, row: null, from: "alert", modules } : state.pinned;
    state.emit("cursor");
  }

  function focused(line) {
    if (!line) return;
    for (const one of lines.values()) one.el.tabIndex = one === line ? 0 : -1;
    point(line);
  }

  function pressed(event) {
    const line = lineOf(event.target);
    if (!line || event.target.matches("input")) return;
    const own = event.target === line.el;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") neighbour(line, event.key)?.focus();
    else if (own && event.key === " ") line.toggle();
    else if (own && event.key === "Enter") line.show();
    else return;
    event.preventDefault();
  }

  function neighbour({ el: from }, key) {
    const all = [...list.querySelectorAll(".nbp-alert")];
    return all[all.indexOf(from) + (key === "ArrowDown" ? 1 : -1)];
  }

  return {
    el,
    fill,
    leave: () => point(null),
    focusNewest: () => [...list.querySelectorAll(".nbp-alert")].at(-1)?.focus(),
    scrollToNewest() {
      const head = about.parentNode;
      if (head !== list.firstChild) el.scrollTop = head.offsetTop - el.offsetTop;
    },
  };
}

function createHead() {
  const steps = element("b");
  const words = element("span", { class: "nbp-soft" });
  return {
    el: element("div", { class: "nbp-burst" }, steps, words),
    describe(burst) {
      const [first, rest] = burstWords(burst);
      setText(steps, first);
      setText(words, rest);
    },
  };
}

function keyOf({ step, rule, text }) {
  return `${step} ${rule} ${text}`;
}

function kept(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

function arrange(list, nodes) {
  nodes.forEach((node, at) => {
    if (list.childNodes[at] !== node) list.insertBefore(node, list.childNodes[at] ?? null);
  });
  while (list.childNodes.length > nodes.length) list.lastChild.remove();
}
