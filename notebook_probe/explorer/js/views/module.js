/** The ES module that a view brought: `export default { draw(element, data) }`. */

import { element } from "../dom.js";

/**
 * Loaded at once; a new text needs a new one, with an element of its own.
 * @param {string} text
 */
export function createModule(text) {
  const el = element("div", { class: "nbp-own-drawing" });
  const blobUrl = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const loading = load(blobUrl);
  const made = {
    el,
    /** What went wrong in it, with its line; empty when the last drawing went well. */
    problem: "",
    /** @param {unknown} data */
    async draw(data) {
      try {
        await (await loading)(el, data);
        made.problem = "";
      } catch (error) {
        made.problem = `▲ ${error}${lineOf(error, blobUrl)}`;
      }
    },
  };
  loading.catch(() => {}); // told when it is to draw
  return made;
}

/**
 * @param {string} blobUrl
 * @returns {Promise<(element: HTMLElement, data: unknown) => unknown>}
 */
async function load(blobUrl) {
  try {
    const { default: exported } = await import(blobUrl);
    if (typeof exported?.draw !== "function")
      throw new TypeError("the module has no `export default { draw(element, data) { … } }`");
    return exported.draw.bind(exported);
  } finally {
    URL.revokeObjectURL(blobUrl);
  }
}

/**
 * @param {unknown} error
 * @param {string} blobUrl
 */
function lineOf(error, blobUrl) {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const line = Number.parseInt(stack.split(`${blobUrl}:`)[1], 10);
  return line ? `\nline ${line} of its module` : "";
}
