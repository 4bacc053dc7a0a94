/** Legend of the colors of the boxes, in one line, as next to the heat map. */

import { element, setHidden, setText } from "../../dom.js";
import { significant } from "../../format.js";
import { apartText } from "../compare/ratio_frame.js";

const STOPS = 16;

export function createLegend() {
  const [low, bar, high] = [element("span"), element("i"), element("span")];
  const when = element("span", { class: "nbp-graph-when" });
  const el = element("div", { class: "nbp-graph-legend", hidden: "" }, low, bar, high, when);
  /** @type {HeatPicture | null} */
  let shown = null;

  /**
   * Of the picture of the heat map; `text` is what is coloured and when.
   * @param {HeatPicture | null} picture
   * @param {string} text
   */
  function show(picture, text) {
    setHidden(el, !picture?.values);
    setText(when, text);
    if (!picture?.values || picture === shown) return;
    shown = picture;
    const { values, map, frame } = picture;
    /** @type {(value: number) => string} */
    const told = (value) => (frame.ratio ? apartText(value, frame.signed) : significant(value));
    setText(low, told(values.low));
    setText(high, told(values.high));
    const stops = Array.from({ length: STOPS + 1 }, (_, k) => `rgb(${map.at(k / STOPS).join(" ")})`);
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  }

  return { el, show };
}
