/** A drawer below the foot, for what was found: it opens there so that no view moves; one at a time. */

import { element, setAttribute, setHidden } from "../dom.js";

/**
 * `open({ anchor, label, content, closed })` shows `content` as a region named `label`, opened by
 * the button `anchor`, and scrolls it into view; opened by the same anchor again, it closes. Escape
 * closes it and gives the focus back.
 * @param {Pick<PanelParts, "signal">} parts
 */
export function createDrawer({ signal }) {
  const el = element("section", { class: "nbp-drawer", tabindex: "-1", hidden: "" });
  /** @type {{ anchor: HTMLElement, closed?: () => void } | null} */
  let current = null; // { anchor, closed }
  el.addEventListener("keydown", pressed, { signal });

  /** @param {{ anchor: HTMLElement, label: string, content: Node, closed?: () => void }} options */
  function open({ anchor, label, content, closed }) {
    const again = current?.anchor === anchor;
    close();
    if (again) return;
    current = { anchor, closed };
    setAttribute(el, "aria-label", label);
    setAttribute(anchor, "aria-expanded", true);
    el.replaceChildren(content);
    setHidden(el, false);
    el.scrollIntoView({ block: "nearest" });
  }

  function close() {
    if (!current) return;
    const { anchor, closed } = current;
    const hadFocus = el.matches(":focus-within");
    current = null;
    setHidden(el, true);
    el.replaceChildren();
    setAttribute(anchor, "aria-expanded", false);
    if (hadFocus) anchor.focus();
    closed?.();
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    close();
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {Element} anchor */
  const isOpenAt = (anchor) => current?.anchor === anchor;

  return { el, open, close, isOpenAt };
}
