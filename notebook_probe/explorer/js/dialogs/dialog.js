/** A popover with a caret that opens at what it changes; one at a time, inside the panel. */

import { element, setAttribute } from "../dom.js";

/**
 * @typedef {{
 *   anchor: HTMLElement,
 *   box: HTMLElement,
 *   inside: HTMLElement,
 *   caret: HTMLElement,
 *   closed?: () => void,
 * }} OpenDialog
 */

const GAP = 9; // between the anchor and the box: the caret
const MARGIN = 8; // of the box to the edges of the panel
const FOCUSABLE = "button, input, select, textarea, a[href], [tabindex]";

/**
 * `open({ anchor, label, content, closed })` puts `content` in a dialog named `label` at the button
 * `anchor`; opened at the same anchor again, it closes. Escape and a click outside close it and give
 * the focus back; Tab stays inside. `follow()` puts it where its anchor has gone.
 * @param {Pick<PanelParts, "root" | "signal">} parts
 */
export function createDialogs({ root, signal }) {
  /** @type {OpenDialog | null} */
  let current = null;
  const observer = new ResizeObserver(() => current && place(current));
  observer.observe(root);
  signal.addEventListener("abort", () => observer.disconnect());
  document.addEventListener("pointerdown", pressedOutside, { signal });

  /** @param {{ anchor: HTMLElement, label: string, content: Node, closed?: () => void }} options */
  function open({ anchor, label, content, closed }) {
    const again = current?.anchor === anchor;
    close();
    if (again) return;
    const caret = element("i", { class: "nbp-caret", "aria-hidden": "true" });
    const inside = element("div", { class: "nbp-dialog-inside" }, content);
    const box = element(
      "div",
      { class: "nbp-dialog", role: "dialog", "aria-label": label, tabindex: "-1" },
      caret,
      inside,
    );
    current = { anchor, box, inside, caret, closed };
    box.addEventListener("keydown", pressed, { signal });
    root.append(box);
    setAttribute(anchor, "aria-expanded", true);
    place(current);
    observer.observe(inside);
    const stops = focusable(box); // a field that is disabled takes no focus
    (stops.find((node) => node.hasAttribute("autofocus")) ?? stops[0] ?? box).focus();
  }

  const close = () => end({});

  /** @param {FocusOptions} focusing how the anchor gets the focus back */
  function end(focusing) {
    if (!current) return;
    const { anchor, box, inside, closed } = current;
    const hadFocus = box.matches(":focus-within");
    current = null;
    observer.unobserve(inside);
    box.remove();
    setAttribute(anchor, "aria-expanded", false);
    if (hadFocus) anchor.focus(focusing);
    closed?.();
  }

  /**
   * Below its anchor where there is room, else above; never across the edge of the panel.
   * @param {OpenDialog} dialog
   */
  function place({ anchor, box, inside, caret }) {
    const [room, at] = [root.getBoundingClientRect(), anchor.getBoundingClientRect()];
    const below = room.bottom - at.bottom - GAP - MARGIN;
    const above = at.top - room.top - GAP - MARGIN;
    const downward = below >= above || below >= inside.scrollHeight;
    inside.style.maxHeight = `${Math.max(120, downward ? below : above)}px`;
    const middle = at.left - room.left + at.width / 2;
    const rightmost = room.width - box.offsetWidth - MARGIN;
    const left = Math.max(MARGIN, Math.min(middle - box.offsetWidth / 2, rightmost));
    box.style.left = `${left}px`;
    const height = box.offsetHeight;
    const top = downward ? at.bottom - room.top + GAP : at.top - room.top - GAP - height;
    box.style.top = `${top}px`;
    box.classList.toggle("nbp-upward", !downward);
    caret.style.left = `${middle - left}px`;
  }

  /** @param {PointerEvent} event */
  function pressedOutside(event) {
    // Scrolling to the anchor would move what is pressed away from the pointer: no click would follow.
    const path = event.composedPath();
    if (current && !path.includes(current.box) && !path.includes(current.anchor)) end({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (event.key === "Escape") close();
    else if (event.key !== "Tab" || !turned(event.shiftKey)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * From the last to the first, and back; elsewhere the browser's own order holds.
   * @param {boolean} backwards
   */
  function turned(backwards) {
    const nodes = current ? focusable(current.box) : [];
    const [from, to] = backwards ? [nodes[0], nodes.at(-1)] : [nodes.at(-1), nodes[0]];
    const leaves = !from || from.matches(":focus");
    if (leaves) to?.focus();
    return leaves;
  }

  /** @param {Element} anchor */
  const isOpenAt = (anchor) => current?.anchor === anchor;

  return { open, close, follow: () => current && place(current), isOpenAt };
}

/** @param {HTMLElement} box */
function focusable(box) {
  return /** @type {Control[]} */ ([...box.querySelectorAll(FOCUSABLE)]).filter(
    (node) => node.tabIndex >= 0 && !node.disabled && node.offsetParent,
  );
}
