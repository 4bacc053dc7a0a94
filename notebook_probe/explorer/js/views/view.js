/** One registered view: its name and cost, and what was drawn, by matplotlib or by its ES module. */

import { element, setAttribute, setHidden, setText } from "../dom.js";
import { grouped, microseconds, significant, THIN_SPACE } from "../format.js";
import { createModule } from "./module.js";
import { unpacked } from "./unpacked.js";

/** @typedef {DrawnFrame & { buffers: Buffers }} DrawnMessage */
/** @typedef {{ name: string, folded: () => void } & Pick<PanelParts, "link" | "signal">} ViewOptions */

const NOTHING = "Nothing to draw yet.";

/** @param {ViewOptions} options */
export function createView({ name, link, folded: foldedChanged, signal }) {
  const sign = element("span", { class: "nbp-fold", "aria-hidden": "true" });
  const fold = element(
    "button",
    { class: "nbp-own-name", type: "button", "data-action": "fold" },
    sign,
    name,
  );
  const cost = element("span", { class: "nbp-soft" });
  const note = element("div", { class: "nbp-own-note" }, NOTHING);
  const problem = element("div", { class: "nbp-own-problem", role: "alert", hidden: "" });
  const place = element("div", { class: "nbp-own-place" }, note, problem);
  const el = element(
    "section",
    { class: "nbp-own", "data-view": name, "aria-label": name },
    element("div", { class: "nbp-own-head" }, fold, cost),
    place,
  );
  /** @type {ViewRow} */
  let row = { name, summary: "", folded: false, cost_s: null, every_s: null, error: "", where: "", n_errors: 0 };
  /** @type {boolean | null} */
  let wanted = null; // folded or not, until the kernel knows
  /** @type {ReturnType<typeof createModule> | null} */
  let module = null;
  /** @type {HTMLElement} */
  let shown = note;
  let imageUrl = "";

  fold.addEventListener("click", toggle, { signal });
  const observer = new ResizeObserver(() => link.resized(name, place.clientWidth));
  observer.observe(place);
  signal.addEventListener("abort", () => {
    observer.disconnect();
    URL.revokeObjectURL(imageUrl);
  });

  function isFolded() {
    return wanted ?? row.folded;
  }

  function toggle() {
    wanted = !isFolded();
    link.send("fold", { name, folded: wanted });
    refresh();
    foldedChanged();
  }

  function refresh() {
    const folded = isFolded();
    setHidden(place, folded);
    el.classList.toggle("nbp-folded", folded);
    setText(sign, folded ? "▸" : "▾");
    setAttribute(fold, "aria-expanded", !folded);
    setAttribute(fold, "title", row.summary || null);
    setText(cost, costText(row));
    const text = row.error ? errorText(row) : (module?.problem ?? "");
    setText(problem, text);
    setHidden(problem, !text);
    setHidden(shown, Boolean(text));
  }

  /** @param {HTMLElement} node */
  function show(node) {
    if (shown !== node) shown.replaceWith(node);
    shown = node;
    refresh();
  }

  /** @param {DrawnMessage} message */
  async function showImage({ width, height, buffers }) {
    const url = URL.createObjectURL(new Blob([buffers[0]], { type: "image/png" }));
    const image = element("img", { src: url, width: width ?? 0, height: height ?? 0, alt: row.summary || name });
    await image.decode(); // the old picture stays until the new one can be painted
    URL.revokeObjectURL(imageUrl);
    imageUrl = url;
    show(image);
  }

  /** @param {DrawnMessage} message */
  async function showData(message) {
    const drawing = module; // another one may come meanwhile
    if (!drawing) return;
    await drawing.draw(unpacked(message));
    if (drawing === module) show(drawing.el);
  }

  const forms = { image: showImage, data: showData, nothing: () => show(note) };

  return {
    el,
    isFolded,
    /**
     * What the kernel says of it.
     * @param {ViewRow} told
     */
    describe(told) {
      row = told;
      if (wanted === row.folded) wanted = null;
      refresh();
    },
    /**
     * The ES module of a view that was registered, maybe again: what was drawn before is gone.
     * @param {string} text
     */
    bring(text) {
      module = text ? createModule(text) : null;
      show(note);
    },
    /** @param {DrawnMessage} message */
    async draw(message) {
      try {
        await forms[message.form](message);
      } catch (error) {
        setText(note, `This picture cannot be shown: ${error instanceof Error ? error.message : error}`);
        show(note);
      }
      if (!signal.aborted) link.painted(name, message.seq);
    },
  };
}

/**
 * " · 84 ms, every 3 s": what a drawing takes of a core, and how often it may.
 * @param {ViewRow} row
 */
function costText({ cost_s, every_s }) {
  if (cost_s === null || cost_s === undefined) return "";
  const every = every_s === null ? "" : `, every ${significant(every_s, 1)}${THIN_SPACE}s`;
  return ` · ${microseconds(cost_s * 1e6)}${every}`;
}

/** @param {ViewRow} row */
function errorText({ error, where, n_errors }) {
  const times = n_errors > 1 ? ` (${grouped(n_errors)} times)` : "";
  return `▲ ${error}${times}${where ? `\n${where}` : ""}`;
}
