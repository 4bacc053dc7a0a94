/** Selection of visible columns: a list of all columns, to be searched and ticked. */

import { element, listener, setText } from "../../js/dom.js";

/** @type {Record<string, number>} */
const ARROWS = { ArrowDown: 1, ArrowUp: -1 };
const MOST = 200; // listed at once; the others by typing

/**
 * `pick(names)` is told the columns that are wanted now.
 * @param {Pick<PanelParts, "dialogs" | "signal"> & { rows: TableRows, pick: (names: string[]) => void }} parts
 */
export function createPicking({ rows, dialogs, pick, signal }) {
  const button = element(
    "button",
    { type: "button", class: "nbp-runs-columns", "aria-haspopup": "dialog", "aria-expanded": "false" },
    "columns",
    element("i", { class: "nbp-chevron", "aria-hidden": "true" }),
  );
  button.addEventListener("click", open, { signal });

  function open() {
    const life = new AbortController();
    const listen = listener(life.signal);
    const search = element("input", {
      type: "search",
      autofocus: "",
      "aria-label": "Find a column",
      placeholder: "Find a column",
      spellcheck: "false",
    });
    const list = element("div", { class: "nbp-runs-list", role: "group", "aria-label": "Columns" });
    const said = element("p", { class: "nbp-soft", role: "status" });
    const again = element("button", { type: "button" }, "Those that differ");
    const none = element("button", { type: "button" }, "None");
    const content = element(
      "div",
      { class: "nbp-runs-picking" },
      search,
      list,
      said,
      element("footer", {}, again, none),
    );

    listen(search, "input", refresh);
    listen(content, "keydown", moved);
    listen(again, "click", () => choose(rows.standard));
    listen(none, "click", () => choose([]));
    listen(list, "change", ({ target }) => {
      if (!(target instanceof HTMLInputElement)) return;
      const rest = rows.picked.filter((name) => name !== target.value);
      pick(target.checked ? inOrder([...rest, target.value]) : rest);
    });

    /** @param {string[]} names */
    function choose(names) {
      pick(names);
      refresh();
    }

    /**
     * As the table names them, so that a column has its place again.
     * @param {string[]} names
     */
    function inOrder(names) {
      const standard = rows.standard.filter((name) => names.includes(name));
      return [...standard, ...rows.names.filter((name) => names.includes(name) && !standard.includes(name))];
    }

    function refresh() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      /** @type {(name: string) => boolean} */
      const isMeant = (name) => words.every((word) => name.toLowerCase().includes(word));
      const picked = new Set(rows.picked);
      const rest = rows.names.filter((name) => !picked.has(name) && name !== "run");
      const found = [...rows.picked, ...rest].filter(isMeant);
      list.replaceChildren(...found.slice(0, MOST).map((name) => lineOf(name, picked.has(name))));
      const left = found.length - MOST;
      const none = `Nothing is called ${search.value.trim()}`;
      setText(said, !found.length ? none : left > 0 ? `${left} more: type a part of the name` : "");
    }

    /** @param {KeyboardEvent} event */
    function moved(event) {
      const by = ARROWS[event.key];
      const stops = [search, ...list.querySelectorAll("input")];
      const at = stops.findIndex((one) => one === document.activeElement);
      if (event.key !== "Escape" && event.key !== "Tab") event.stopPropagation();
      if (!by || at < 0) return;
      stops[Math.min(Math.max(at + by, 0), stops.length - 1)].focus();
      event.preventDefault();
    }

    refresh();
    dialogs.open({ anchor: button, label: "Columns", content, closed: () => life.abort() });
  }

  return { el: button };
}

/**
 * @param {string} name
 * @param {boolean} isPicked
 */
function lineOf(name, isPicked) {
  const tick = element("input", { type: "checkbox", value: name });
  tick.checked = isPicked;
  return element("label", { title: name }, tick, element("span", {}, name));
}
