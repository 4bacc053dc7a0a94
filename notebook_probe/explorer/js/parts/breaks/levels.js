/** Over the lines: a dashed line at the number of each breakpoint, with a flag that is dragged. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { valueOr } from "../../maps.js";
import { significant } from "../../format.js";

/** @type {Record<string, number>} */
const STEPS = { ArrowUp: 1, ArrowDown: -1 };
const PAST_PX = 4; // a press that moves no further is no drag

/**
 * `place(painted)` after each paint of the plot; `el` lies over it.
 * @param {Pick<PanelParts, "state" | "link">} parts
 */
export function createLevels({ state, link }) {
  const el = element("div", { class: "nbp-levels" });
  /** @type {Map<number, ReturnType<typeof createLevel>>} */
  const levels = new Map(); // id -> level

  /** @param {PaintedLines | null} now */
  function place(now) {
    const rows = now ? drawnBreaks(state, now) : [];
    for (const [id, level] of levels) {
      if (rows.some((row) => row.id === id)) continue;
      level.el.remove();
      levels.delete(id);
    }
    if (!now) return;
    for (const row of rows) {
      const chart = now.charts.find(({ prepared }) => prepared.some((one) => isOf(row, one)));
      if (!chart) continue;
      const level = valueOr(levels, row.id, () => createLevel(el, ask));
      if (level.el.parentNode !== el) el.append(level.el);
      level.describe(row, chart);
    }
  }

  /**
   * @param {number} which
   * @param {number} number
   */
  function ask(which, number) {
    link.ask("edit_break", { which, armed: null, number });
  }

  return { el, place };
}

/**
 * @param {HTMLElement} over
 * @param {(which: number, number: number) => void} ask
 */
function createLevel(over, ask) {
  const line = element("div", { class: "nbp-level" });
  const text = element("span");
  const handle = element(
    "button",
    { class: "nbp-level-flag", type: "button" },
    element("i", { class: "nbp-flag", "aria-hidden": "true" }),
    text,
  );
  const el = element("div", {}, line, handle);
  /** @type {{ row: BreakRow, chart: LineChart } | null} */
  let told = null;
  /** @type {{ from: number, number: number | null } | null} */
  let moving = null; // { from, number }
  /** @type {number | null} */
  let asked = null; // the number that was let go of, until the kernel says it

  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    moving = { from: event.clientY, number: null };
    event.stopPropagation(); // to the plot below a press would begin a range
  });
  handle.addEventListener("pointermove", (event) => {
    if (!told || !moving || Math.abs(event.clientY - moving.from) < PAST_PX) return;
    const { values, box } = told.chart;
    const y = event.clientY - over.getBoundingClientRect().top;
    moving.number = rounded(values.value(Math.min(Math.max(y, box.top), box.bottom)));
    show();
  });
  handle.addEventListener("pointerup", () => settle());
  handle.addEventListener("pointercancel", () => settle(false));
  handle.addEventListener("keydown", (event) => {
    const way = STEPS[event.key];
    if (!way || !told) return;
    event.preventDefault();
    event.stopPropagation();
    const number = asked ?? told.row.number ?? 0;
    asked = Number((number + way * 0.01 * (Math.abs(number) || 1)).toPrecision(12));
    ask(told.row.id, asked);
    show();
  });

  /** @param {boolean} [keeps] */
  function settle(keeps = true) {
    const number = moving?.number ?? null;
    moving = null;
    if (told && keeps && number !== null) {
      asked = number;
      ask(told.row.id, number);
    }
    show();
  }

  function show() {
    if (!told) return;
    const { row, chart } = told;
    const { values, box } = chart;
    const number = moving?.number ?? asked ?? row.number ?? 0;
    const at = values.place(number);
    const inside = at >= box.top - 0.5 && at <= box.bottom + 0.5;
    const y = inside ? at : at < box.top ? box.top : box.bottom;
    const beyond = inside ? "" : at < box.top ? "↑ " : "↓ ";
    line.style.transform = `translate(${box.left}px, ${y.toFixed(1)}px)`;
    line.style.width = `${box.right - box.left}px`;
    setHidden(line, !inside);
    handle.style.transform = `translate(${box.right + 8}px, ${y.toFixed(1)}px) translateY(-50%)`;
    setText(text, `${beyond}pause ${row.sign} ${significant(number)}`);
    setAttribute(handle, "data-number", number);
  }

  return {
    el,
    /**
     * @param {BreakRow} row
     * @param {LineChart} chart
     */
    describe(row, chart) {
      if (told && row.number !== told.row.number) asked = null;
      told = { row, chart };
      setAttribute(handle, "title", `${row.text}: drag, or arrows for 1 %`);
      setAttribute(handle, "aria-label", `Pause at ${row.text}`);
      setAttribute(el, "data-pauses", row.pauses ? "true" : null);
      show();
    },
  };
}

/**
 * Breakpoints on the series that are drawn.
 * @param {PanelState} state
 * @param {PaintedLines} painted
 */
function drawnBreaks(state, { charts }) {
  const drawn = charts.flatMap(({ prepared }) => prepared);
  return state.parts.breaks.rows.filter(
    (row) => row.armed && row.kind === "series" && drawn.some((one) => isOf(row, one)),
  );
}

/**
 * @param {BreakRow} row
 * @param {PreparedSeries} series
 */
function isOf({ module, quantity }, series) {
  return series.module === module && series.quantity === quantity;
}

/**
 * Three digits: as exact as a hand is.
 * @param {number} value
 */
function rounded(value) {
  return Number(value.toPrecision(3));
}
