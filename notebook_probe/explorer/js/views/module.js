/** The ES module that a view brought: `export default { draw(element, data) }`. */

import { element } from "../dom.js";

/** Loaded at once; a new text needs a new one, with an element of its own. */
export function createModule(text) {
  const el = element("div", { class: "nbp-own-drawing" });
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const loading = load(url);
  const made = {
    el,
    /** What went wrong in it, with its line; empty when the last drawing went well. */
    problem: "",
    async draw(data) {
      try {
        await (await loading)(el, data);
        made.problem = "";
      } catch (error) {
        made.problem = `▲ ${error}${lineOf(error, url)}`;
      }
    },
  };
  loading.catch(() => {}); // told when it is to draw
  return made;
}

async function load(url) {
  try {
    const { default: exported } = await import(url);
    if (typeof exported?.draw !== "function")
      throw new TypeError("the module has no `export default { draw(element, data) { … } }`");
    return exported.draw.bind(exported);
  } finally {
    URL.revokeObjectURL(url);
  }
}

function lineOf(error, url) {
  const line = Number.parseInt(error?.stack?.split(`${url}:`)[1], 10);
  return line ? `\nline ${line} of its module` : "";
}
