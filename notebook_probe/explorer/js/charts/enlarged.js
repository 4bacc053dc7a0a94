/** One chart in the whole window, with the next and the previous one. */

import { element, listener, setAttribute, setText } from "../dom.js";
import { seriesName } from "../names.js";

/** @type {Record<string, number>} */
const KEYS = { PageUp: -1, PageDown: 1 };

/**
 * `bar` stands above the chart that is enlarged.
 * @param {Pick<PanelParts, "root" | "state" | "signal">} parts
 */
export function createEnlarged({ root, state, signal }) {
  const before = button("‹ previous", "previous-chart", "The chart above (Page Up)");
  const after = button("next ›", "next-chart", "The chart below (Page Down)");
  const close = button("✕ close", "close-chart", "All charts again (Escape)");
  const words = element("span", { class: "nbp-enlarged-name", role: "status" });
  const bar = element("div", { class: "nbp-enlarged-bar" }, before, after, words, close);
  let hasPopover = false; // in the top layer by this, not by the dock
  /** @type {HTMLElement | null} */
  let opener = null;

  const listen = listener(signal);
  listen(before, "click", () => go(-1));
  listen(after, "click", () => go(1));
  listen(close, "click", leave);
  root.addEventListener("keydown", pressed, { signal, capture: true });
  document.addEventListener("fullscreenchange", changed, { signal });
  signal.addEventListener("abort", leave);

  /**
   * @param {number} at place of the chart
   * @param {HTMLElement} from what gets the focus back
   */
  function enter(at, from) {
    opener = from;
    root.classList.add("nbp-enlarged");
    if (!root.hasAttribute("popover")) {
      root.setAttribute("popover", "manual"); // above the page, whatever clips or moves the cell
      root.showPopover();
      hasPopover = true;
    }
    // The window is enough where a page may not fill the screen.
    root.requestFullscreen?.().catch(() => {});
    show(at);
    close.focus();
  }

  function leave() {
    if (state.enlarged === null) return;
    root.classList.remove("nbp-enlarged");
    if (document.fullscreenElement === root) document.exitFullscreen().catch(() => {});
    if (hasPopover) {
      root.hidePopover();
      root.removeAttribute("popover");
      hasPopover = false;
    }
    show(null);
  }

  /** The browser's own key has ended the full screen. */
  function changed() {
    if (!document.fullscreenElement) leave();
  }

  /** @param {number} by */
  function go(by) {
    const n = state.charts.length;
    if (state.enlarged !== null && n) show((state.enlarged + by + n) % n);
  }

  /** @param {number | null} at */
  function show(at) {
    state.enlarged = at;
    state.emit("enlarged");
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (state.enlarged === null) return;
    if (event.key === "Escape" && !root.querySelector(".nbp-dialog")) leave();
    else if (event.key in KEYS) go(KEYS[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** After each paint: which chart it is. */
  function describe() {
    if (state.enlarged === null) {
      opener?.focus(); // which is there again only now
      opener = null;
      return;
    }
    const chart = state.charts[state.enlarged];
    if (!chart) return leave();
    const names = chart.prepared.filter((one) => !one.left).map((one) => seriesName(one.module, one.quantity));
    const some = names.slice(0, 4).join(", ") + (names.length > 4 ? ` and ${names.length - 4} more` : "");
    setText(words, `${state.enlarged + 1} of ${state.charts.length}: ${some || "no series"}`);
    for (const node of [before, after]) setAttribute(node, "hidden", state.charts.length > 1 ? null : "");
    return undefined;
  }

  return { bar, enter, describe };
}

/**
 * @param {string} text
 * @param {string} action
 * @param {string} title
 */
function button(text, action, title) {
  return element("button", { type: "button", "data-action": action, title }, text);
}
