/** Over the lines: a dashed line at the number of each breakpoint, with a flag that is dragged. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { significant } from "../../format.js";

const PAST_PX = 4; // a press that moves no further is no drag

/**
 * `place(painted)` after each paint of the plot; `el` lies over it.
 * @param {Pick<PanelParts, "state" | "link">} parts
 */
export function createLevels({ state, link }) {
  const el = element("div", { class: "nbp-levels" });
  const levels = new Map(); // id -> level
  let painted = null;

  function place(now) {
    painted = now;
    const rows = painted ? state.parts.breaks.rows.filter(isDrawn) : [];
    for (const [id, level] of levels) {
      if (rows.some((row) => row.id === id)) continue;
      level.el.remove();
      levels.delete(id);
    }
    for (const row of rows) {
      if (!levels.has(row.id)) {
        levels.set(row.id, createLevel(() => painted, ask));
        el.append(levels.get(row.id).el);
      }
      levels.get(row.id).describe(row, painted);
    }
  }

  function isDrawn({ armed, kind, module, quantity }) {
    return (
      armed &&
      kind === "series" &&
      painted.prepared.some((one) => one.module === module && one.quantity === quantity)
    );
  }

  function ask(which, number) {
    link.ask("edit_break", { which, armed: null, number });
  }

  return { el, place };
}

function createLevel(latest, ask) {
  const line = element("div", { class: "nbp-level" });
  const text = element("span");
  const handle = element(
    "button",
    { class: "nbp-level-flag", type: "button" },
    element("i", { class: "nbp-flag", "aria-hidden": "true" }),
    text,
  );
  const el = element("div", {}, line, handle);
  let row = null;
  let moving = null; // { from, number }
  let asked = null; // the number that was let go of, until the kernel says it

  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    moving = { from: event.clientY, number: null };
    event.stopPropagation();
  });
  handle.addEventListener("pointermove", (event) => {
    if (!moving || Math.abs(event.clientY - moving.from) < PAST_PX) return;
    const { values, box } = latest();
    const y = event.clientY - el.parentElement.getBoundingClientRect().top;
    moving.number = rounded(values.value(Math.min(Math.max(y, box.top), box.bottom)));
    show();
  });
  handle.addEventListener("pointerup", () => settle());
  handle.addEventListener("pointercancel", () => settle(false));
  handle.addEventListener("keydown", (event) => {
    const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    event.stopPropagation();
    const number = asked ?? row.number;
    asked = Number((number + way * 0.01 * (Math.abs(number) || 1)).toPrecision(12));
    ask(row.id, asked);
    show();
  });

  function settle(keeps = true) {
    const number = moving?.number ?? null;
    moving = null;
    if (keeps && number !== null) {
      asked = number;
      ask(row.id, number);
    }
    show();
  }

  function show() {
    const { values, box } = latest();
    const number = moving?.number ?? asked ?? row.number;
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
    describe(told) {
      if (row && told.number !== row.number) asked = null;
      row = told;
      setAttribute(handle, "title", `${row.text}: drag, or arrows for 1 %`);
      setAttribute(handle, "aria-label", `Pause at ${row.text}`);
      setAttribute(el, "data-holds", row.holds ? "true" : null);
      show();
    },
  };
}

/** Three digits: as exact as a hand is. */
function rounded(value) {
  return Number(value.toPrecision(3));
}
