export default {
  /**
   * @param {SteppedElement} element
   * @param {{ series: TextSeries[], run: string }} data
   */
  draw(element, data) {
    stepper(element, data.series, (place, one, at) => sideBySide(place, { run: data.run, one, at, make: textOf }));
  },
};

/**
 * @param {TextSeries} series
 * @param {number} at
 */
function textOf({ texts }, at) {
  const node = document.createElement("div");
  node.style = "max-height: 220px; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere";
  node.tabIndex = 0;
  node.className = "nbp-noted";
  node.textContent = texts[at];
  return node;
}
