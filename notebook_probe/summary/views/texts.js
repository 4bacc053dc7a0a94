export default {
  /**
   * @param {SteppedElement} element
   * @param {{ series: TextSeries[], run: string }} data
   */
  draw(element, data) {
    stepper(element, data.series, (place, one, at) => {
      const own = { name: one.beside ? data.run : "", step: one.steps[at], content: textOf(one, at) };
      if (!one.beside) return sideBySide(place, [own]);
      const there = placeOf(one.beside.steps, one.steps[at]);
      const { run, steps } = one.beside;
      return sideBySide(place, [own, { name: run, step: steps[there], content: textOf(one.beside, there) }]);
    });
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
