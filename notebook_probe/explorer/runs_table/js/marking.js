/** Name, tags and note of a run, edited at its row; a star is a tag. */

import { element, setAttribute, setText } from "../../js/dom.js";

/** The tag that a star stands for. */
const STAR = "star";

/**
 * `send(at, field, text)` has the kernel mark a run; `focus(at)` gives its row the focus.
 * @param {{
 *   rows: TableRows,
 *   dialogs: Dialogs,
 *   body: () => RunsBody,
 *   send: (at: number, field: string, text: string) => void,
 *   failed: (problem: string) => void,
 *   signal: AbortSignal,
 * }} parts
 */
export function createMarking({ rows, dialogs, body, send, failed, signal }) {
  /** @type {{ at: number, left: number, said: HTMLElement } | null} */
  let editing = null;

  /** @param {number} at */
  function star(at) {
    const { tags } = rows.marksOf(at);
    const rest = tags.filter((tag) => tag !== STAR);
    send(at, "tags", (rest.length < tags.length ? rest : [...tags, STAR]).join(", "));
  }

  /** @param {number} at */
  function edit(at) {
    const anchor = body().rowOf(at)?.edit;
    if (!anchor) return;
    const known = rows.marksOf(at);
    const name = fieldOf("input", { autofocus: "", maxlength: 100 }, known.name || rows.labels[at]);
    const tags = fieldOf("input", { placeholder: "good, for the paper" }, known.tags.join(", "));
    const note = fieldOf("textarea", { rows: 3, maxlength: 10_000 }, known.note);
    const said = element("p", { class: "nbp-bad", role: "status" });
    const save = element("button", { type: "submit", class: "nbp-main" }, "Save");
    const form = element(
      "form",
      { class: "nbp-runs-marking" },
      ...[["Name", name], ["Tags", tags], ["Note", note]].map(([text, field]) => element("label", {}, text, field)),
      said,
      element("footer", {}, save, element("span", { class: "nbp-soft" }, "stored with the record")),
    );
    const fields = { name, tags, note };
    const before = Object.fromEntries(Object.entries(fields).map(([field, { value }]) => [field, value]));
    form.addEventListener("submit", submitted, { signal });
    form.addEventListener("keydown", keyed, { signal });
    dialogs.open({ anchor, label: `Marks of ${rows.labels[at]}`, content: form, closed: () => closed(at) });

    /** @param {SubmitEvent} event */
    function submitted(event) {
      event.preventDefault();
      const changed = Object.entries(fields).filter(([field, { value }]) => value !== before[field]);
      if (!changed.length) return dialogs.close();
      setText(said, "");
      editing = { at, left: changed.length, said };
      for (const [field, { value }] of changed) send(at, field, value);
    }
  }

  /**
   * The table and the notebook have keys of their own.
   * @param {KeyboardEvent} event
   */
  function keyed(event) {
    if (!["Escape", "Tab"].includes(event.key)) event.stopPropagation();
  }

  /** @param {number} at */
  function closed(at) {
    editing = null;
    if (document.activeElement === document.body) body().focusAt(at);
  }

  /**
   * What came of a mark.
   * @param {{ at: number, problem: string }} message
   */
  function answered({ at, problem }) {
    if (editing?.at !== at) return failed(problem);
    if (problem) return setText(editing.said, problem);
    editing.left -= 1;
    if (!editing.left) dialogs.close();
    return undefined;
  }

  return { star, edit, answered };
}

/**
 * @template {"input" | "textarea"} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number>} attributes
 * @param {string} value
 */
function fieldOf(tag, attributes, value) {
  const field = element(tag, { spellcheck: "false", ...attributes });
  field.value = value;
  return field;
}

/**
 * The buttons of a row: a star, and what opens the fields.
 * @param {string} label
 */
export function createMarkButtons(label) {
  /** @type {(act: string, text: string, name: string) => HTMLButtonElement} */
  const button = (act, text, name) =>
    element(
      "button",
      { type: "button", tabindex: "-1", class: `nbp-runs-${act}`, "data-act": act, "aria-label": name },
      text,
    );
  const star = button("star", "☆", `Star ${label}`);
  const edit = button("edit", "✎", `Name, tags and note of ${label}`);
  star.title = "a star (s)";
  edit.title = "name, tags and note (e)";
  edit.setAttribute("aria-haspopup", "dialog");
  return {
    star,
    edit,
    /** @param {RunMarks} marks */
    show({ tags, note }) {
      const isOn = tags.includes(STAR);
      setText(star, isOn ? "★" : "☆");
      setAttribute(star, "aria-pressed", isOn);
      edit.title = ["name, tags and note (e)", note].filter(Boolean).join("\n");
    },
  };
}
