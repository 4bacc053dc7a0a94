/** Over the lines: for each chart its handle and its options, and an edge that changes its height. */

import { element, setAttribute, setHidden } from "../dom.js";
import { seriesName } from "../names.js";
import { TITLE_PX } from "../plots/lines/charts.js";
import { arrangedCharts, changed, LEAST_PX, MOST_PX, moved } from "./arranged.js";
import { createChartOptions } from "./chart_options.js";

const KEY_PX = 20; // by which a key changes a height
const OPTIONS_PX = 90; // from the right end of a chart to the left end of its buttons
/** @type {Record<string, number>} */
const WAYS = { ArrowUp: -1, ArrowDown: 1 };

/**
 * `place(painted)` after each paint of the plot; `el` lies over it.
 * @param {PanelParts} parts
 * @param {{ enlarge: (at: number, from: HTMLElement) => void, rise: (at: number) => void }} acts
 */
export function createChartBars(parts, { enlarge, rise }) {
  const { state, selection } = parts;
  const options = createChartOptions(parts);
  const target = element("div", { class: "nbp-chart-target", hidden: "" }); // where a chart would go
  const el = element("div", { class: "nbp-chart-bars" }, target);
  /** @type {ReturnType<typeof createBar>[]} */
  const bars = [];

  /** @param {PaintedLines | null} painted */
  function place(painted) {
    const charts = painted?.charts ?? [];
    setHidden(el, state.enlarged !== null);
    if (el.hidden) return;
    const isArranged = state.selection.charts.length > 0;
    while (bars.length > charts.length) bars.pop()?.remove();
    charts.forEach((chart, at) => {
      bars[at] ??= createBar(at);
      bars[at].describe(chart, at === charts.length - 1, isArranged || charts.length > 1);
    });
  }

  /** @param {number} at */
  function createBar(at) {
    const handle = element("button", { type: "button", class: "nbp-chart-handle", "data-action": "move-chart" }, "⠿");
    const more = element("button", { type: "button", class: "nbp-chart-more", "data-action": "chart-options" }, "⋯");
    setAttribute(more, "aria-haspopup", "dialog");
    setAttribute(more, "aria-expanded", false);
    const large = element("button", { type: "button", class: "nbp-chart-large", "data-action": "enlarge-chart" }, "⤢");
    const highest = element("button", { type: "button", class: "nbp-chart-rise", "data-action": "largest-rise" }, "↗");
    const bar = element("div", { class: "nbp-chart-bar" }, handle, more, highest, large);
    const edge = element("div", {
      class: "nbp-chart-edge",
      role: "separator",
      tabindex: "0",
      "aria-orientation": "horizontal",
      "aria-valuemin": LEAST_PX,
      "aria-valuemax": MOST_PX,
    });
    el.append(bar, edge);
    more.addEventListener("click", () => options.open(at, more));
    large.addEventListener("click", () => enlarge(at, large));
    highest.addEventListener("click", () => rise(at));
    handle.addEventListener("keydown", (event) => keyed(event, at));
    dragged(handle, (y) => aim(y), (y) => drop(at, y));
    let begun = 0;
    /** @type {(y: number, from: number) => void} */
    const stretch = (y, from) => resize(at, begun + y - from);
    dragged(edge, stretch, stretch, () => (begun = heightOf(at)));
    edge.addEventListener("keydown", (event) => {
      const way = WAYS[event.key];
      if (!way) return;
      taken(event);
      resize(at, heightOf(at) + way * KEY_PX);
    });

    return {
      handle,
      /**
       * @param {LineChart} chart
       * @param {boolean} isLast
       * @param {boolean} isShown
       */
      describe(chart, isLast, isShown) {
        const { box, prepared } = chart;
        for (const node of [handle, more, edge]) setHidden(node, !isShown);
        const names = [...new Set(prepared.map((one) => seriesName(one.module, one.quantity)))];
        const name = names.length ? names.slice(0, 3).join(", ") : "an empty chart";
        bar.style.transform = `translate(${box.right - OPTIONS_PX}px, ${box.top - TITLE_PX}px)`;
        edge.style.transform = `translate(${box.left}px, ${box.bottom + (isLast ? 17 : 3)}px)`;
        edge.style.width = `${box.right - box.left}px`;
        setAttribute(edge, "aria-label", `Height of the chart of ${name}`);
        setAttribute(edge, "aria-valuenow", Math.round(box.bottom - box.top));
        setAttribute(edge, "title", "Drag to change the height of the chart above (or ↑ ↓)");
        setAttribute(more, "aria-label", `Options of the chart of ${name}`);
        setAttribute(more, "title", "Series, scale, smoothing and height of this chart");
        setAttribute(large, "aria-label", `Enlarge the chart of ${name}`);
        setAttribute(large, "title", "This chart in the whole window");
        setAttribute(highest, "aria-label", `Largest rise in the chart of ${name}`);
        setAttribute(highest, "title", "Pin the largest rise in sight; again: the next one");
        setAttribute(handle, "aria-label", `Move the chart of ${name}`);
        setAttribute(handle, "title", "Drag to move this chart (or ↑ ↓; Delete removes it)");
      },
      remove() {
        for (const node of [bar, edge]) node.remove();
      },
    };
  }

  /** @param {number} at */
  function heightOf(at) {
    const { box } = state.charts[at];
    return box.bottom - box.top;
  }

  /**
   * @param {number} at
   * @param {number} height
   */
  function resize(at, height) {
    const within = Math.round(Math.min(Math.max(height, LEAST_PX), MOST_PX));
    selection.arrange(changed(arrangedCharts(state), at, { height: within }));
  }

  /**
   * The place of a chart that is dropped at a height: after so many others.
   * @param {number} y
   */
  function placeAt(y) {
    return state.charts.filter(({ box }) => (box.top + box.bottom) / 2 < y).length;
  }

  /** @param {number} y */
  function aim(y) {
    const to = placeAt(y);
    const last = state.charts[state.charts.length - 1];
    const top = to < state.charts.length ? state.charts[to].box.top - TITLE_PX - 4 : last.box.bottom + 8;
    setHidden(target, false);
    target.style.transform = `translate(${last.box.left}px, ${top}px)`;
    target.style.width = `${last.box.right - last.box.left}px`;
  }

  /**
   * @param {number} from
   * @param {number} y
   */
  function drop(from, y) {
    setHidden(target, true);
    const to = placeAt(y);
    move(from, to > from ? to - 1 : to);
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  function move(from, to) {
    if (to !== from) selection.arrange(moved(arrangedCharts(state), from, to));
  }

  /**
   * @param {KeyboardEvent} event
   * @param {number} at
   */
  function keyed(event, at) {
    const way = WAYS[event.key];
    const to = at + (way ?? 0);
    if (event.key === "Delete") {
      taken(event);
      options.remove(at);
      bars[Math.max(0, at - 1)]?.handle.focus();
    }
    if (!way || to < 0 || to >= state.charts.length) return;
    taken(event);
    move(at, to);
    bars[to].handle.focus(); // that of the chart that moved
  }

  /**
   * Follows a press that moves: `moves(y, from)` and at its end `ends(y, from)`, in pixels of the plot.
   * @param {HTMLElement} node
   * @param {(y: number, from: number) => void} moves
   * @param {(y: number, from: number) => void} ends
   * @param {() => void} [begins]
   */
  function dragged(node, moves, ends, begins = () => {}) {
    /** @type {number | null} */
    let from = null;
    let isMoving = false;
    const at = (/** @type {PointerEvent} */ event) => event.clientY - el.getBoundingClientRect().top;
    node.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      node.setPointerCapture(event.pointerId);
      from = at(event);
      isMoving = false;
      begins();
      event.stopPropagation(); // to the plot below a press would begin a range
    });
    node.addEventListener("pointermove", (event) => {
      if (from === null || (!isMoving && Math.abs(at(event) - from) < 4)) return;
      isMoving = true;
      moves(at(event), from);
    });
    node.addEventListener("pointerup", (event) => {
      if (from !== null && isMoving) ends(at(event), from);
      from = null;
    });
    node.addEventListener("pointercancel", () => {
      from = null;
      setHidden(target, true);
    });
  }

  return { el, place };
}

/** @param {KeyboardEvent} event */
function taken(event) {
  event.preventDefault();
  event.stopPropagation();
}
