/** Picture, Code and Data: asked of the kernel, saved by the browser. */

import { copyText, element, setHidden, setText } from "../dom.js";
import { createPopover } from "./popover.js";

/** @typedef {ExportClick["kind"]} ExportKind */

/** @type {Record<string, Array<[ExportKind, string, string]>>} */
const KINDS = {
  Picture: [
    ["png", "PNG", "pixels"],
    ["svg", "SVG", "vectors"],
  ],
  Data: [
    ["csv", "CSV", "one row per value"],
    ["netcdf", "netCDF", "xarray opens it"],
  ],
};

/** @param {Pick<PanelParts, "state" | "link" | "signal">} parts */
export function createDownloads({ state, link, signal }) {
  const note = element("span", { class: "nbp-soft", role: "status", "data-role": "export" });
  const menus = Object.entries(KINDS).map(([text, kinds]) => menu(text, kinds));
  const code = linkButton("Code ↓", "The code that draws this view from the record");
  code.setAttribute("data-export", "code");
  code.addEventListener("click", () => ask("code"), { signal });
  const el = element("span", { class: "nbp-downloads" }, note, menus[0], code, menus[1]);
  const text = element("textarea", { readonly: "", spellcheck: "false", "aria-label": "Code" });
  const copy = element("button", { type: "button", "data-action": "copy" }, "Copy");
  const close = element("button", { type: "button", "data-action": "close-code" }, "Close");
  const box = element(
    "div",
    { class: "nbp-code", hidden: "" },
    text,
    element("div", { class: "nbp-buttons" }, copy, close),
  );
  copy.addEventListener("click", () => copyText(text, copy), { signal });
  close.addEventListener("click", () => setHidden(box, true), { signal });
  state.on("exported", arrived);

  /**
   * @param {string} name
   * @param {Array<[ExportKind, string, string]>} kinds
   */
  function menu(name, kinds) {
    const items = () =>
      kinds.map(([kind, label, what]) => ({
        text: label,
        note: what,
        data: { export: kind },
        act: () => ask(kind),
      }));
    return createPopover({ button: linkButton(`${name} ↓`, ""), search: "", items, signal }).el;
  }

  /** @param {ExportKind} kind */
  function ask(kind) {
    setText(note, "asking…");
    link.send("export", { kind });
  }

  function arrived() {
    if (!state.exported) return;
    const { filename, mime, text: lines, error, note: said, buffer } = state.exported;
    note.classList.toggle("nbp-bad", Boolean(error));
    setText(note, error || (lines === undefined ? `${said ?? filename} saved` : ""));
    if (error) return;
    if (lines === undefined) return save(filename, mime, buffer);
    text.value = lines;
    text.rows = Math.min(14, lines.split("\n").length + 1);
    setHidden(box, false);
    text.focus();
    text.select();
  }

  return { el, code: box };
}

/**
 * @param {string} text
 * @param {string} title
 */
function linkButton(text, title) {
  return element("button", { class: "nbp-link", type: "button", title }, text);
}

/**
 * @param {string} filename
 * @param {string} mime
 * @param {Buffers[number]} buffer
 */
function save(filename, mime, buffer) {
  const address = URL.createObjectURL(new Blob([buffer], { type: mime }));
  element("a", { href: address, download: filename }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000); // after the download has begun
}
