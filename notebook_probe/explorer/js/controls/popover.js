/** A list that opens under a button: search, arrow keys, Escape; closes when the focus leaves. */

import { element, listener, setHidden, setText } from "../dom.js";
import { grouped } from "../format.js";

/**
 * @typedef {{
 *   button: HTMLElement,
 *   search: string,
 *   items: (query: string, typed: string) => ListItem[],
 *   hint?: string,
 *   signal: AbortSignal,
 * }} PopoverParts
 */

const MOST_ITEMS = 200;

/**
 * `items(query)` gives `{ text, note, detail, stroke, on, data, act }` in order, for what was typed in
 * small letters; an item that `completes` it is typed instead. `search` is the placeholder of a search field, ""
 * for none. A choice closes the list, and Enter on the button reopens it.
 * @param {PopoverParts} parts
 */
export function createPopover({ button, search, items, hint = "", signal }) {
  const field = element("input", {
    type: "search",
    placeholder: search,
    "aria-label": search || "Choose",
    spellcheck: "false",
  });
  const list = element("div", { class: "nbp-list", role: "listbox", tabindex: "-1", "aria-label": search || "Choose" });
  const more = element("div", { class: "nbp-hint" });
  const box = element(
    "div",
    { class: "nbp-popover", hidden: "" },
    ...(search ? [field] : []),
    list,
    more,
  );
  const el = element("span", { class: "nbp-anchor" }, button, box);
  button.setAttribute("aria-haspopup", "listbox");
  button.setAttribute("aria-expanded", "false");
  const listen = listener(signal);
  listen(button, "click", () => (box.hidden ? open() : close()));
  listen(field, "input", fill);
  listen(el, "keydown", pressed);
  listen(el, "focusout", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !el.contains(relatedTarget)) close();
  });
  document.addEventListener("pointerdown", pressedElsewhere, { signal });

  /** @param {PointerEvent} event */
  function pressedElsewhere(event) {
    if (!box.hidden && !event.composedPath().includes(el)) close();
  }

  function open() {
    setHidden(box, false);
    button.setAttribute("aria-expanded", "true");
    field.value = "";
    fill();
    box.classList.remove("nbp-leftward");
    const room = (el.closest(".nbp-panel") ?? document.body).getBoundingClientRect();
    box.classList.toggle("nbp-leftward", box.getBoundingClientRect().right > room.right - 4);
    // The cell cuts off what stands out of the panel.
    const below = room.bottom - list.getBoundingClientRect().top - 12;
    list.style.maxHeight = `${Math.max(100, Math.min(260, below))}px`;
    (search ? field : list.firstElementChild)?.focus();
  }

  function close() {
    if (box.hidden) return;
    setHidden(box, true);
    button.setAttribute("aria-expanded", "false");
  }

  function fill() {
    const typed = field.value.trim();
    const all = items(typed.toLowerCase(), typed);
    list.replaceChildren(...all.slice(0, MOST_ITEMS).map(itemNode));
    const rest = all.length - MOST_ITEMS;
    const usual = all.length ? (typed ? "" : hint) : "Nothing found.";
    setText(more, rest > 0 ? `${grouped(rest)} more: search to narrow` : usual);
    setHidden(more, !more.textContent);
  }

  /** @param {ListItem} item */
  function itemNode(item) {
    const node = element("button", {
      type: "button",
      class: "nbp-item",
      role: "option",
      "aria-selected": String(Boolean(item.on)),
    });
    for (const [name, value] of Object.entries(item.data)) node.setAttribute(`data-${name}`, value);
    node.append(
      element("span", {}, ...(item.stroke ? [strokeNode(item.stroke)] : []), item.text),
      element("span", { class: "nbp-note-soft" }, item.note ?? ""),
      ...(item.detail ? [element("span", { class: "nbp-detail", title: item.detail }, item.detail)] : []),
    );
    node.addEventListener("click", () => {
      if (item.completes !== undefined) return complete(item.completes);
      item.act();
      return leave();
    });
    return node;
  }

  /** @param {string} stroke */
  function strokeNode(stroke) {
    const node = element("i", { class: "nbp-stroke nbp-coloured", "aria-hidden": "true" });
    node.style.setProperty("--nbp-stroke", stroke);
    return node;
  }

  /** @param {string} text */
  function complete(text) {
    field.value = text;
    fill();
    field.focus();
  }

  function leave() {
    close();
    button.focus();
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (box.hidden) return;
    const nodes = [...list.children];
    const at = nodes.findIndex((node) => node.matches(":focus"));
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1 };
    if (event.key === "Escape") leave();
    else if (event.key in moves) (nodes[moves[event.key]] ?? (search ? field : nodes[0]))?.focus();
    else if (event.key === "Enter" && at < 0 && event.target !== button) nodes[0]?.click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return { el };
}
