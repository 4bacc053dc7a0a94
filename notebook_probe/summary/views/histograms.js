const WIDTH = 600;
const HEIGHT = 150;
const FOOT = 18;

export default {
  /**
   * @param {SteppedElement} element
   * @param {{ series: HistogramSeries[] }} data
   */
  draw(element, data) {
    stepper(element, data.series, (place, { name, steps, edges, counts }, at) => {
      const n = edges.length - 1;
      /** @type {(step: number) => Float64Array} */
      const row = (step) => counts.slice(step * n, (step + 1) * n);
      const most = counts.reduce((a, b) => Math.max(a, b || 0), 0) || 1;
      /** @type {(count: number) => number} */
      const y = (count) => HEIGHT - ((count || 0) / most) * (HEIGHT - 8);
      /** @type {(values: Float64Array) => string} */
      const outline = (values) => {
        const tops = [...values].map((v, i) => `V${y(v)}H${((i + 1) * WIDTH) / n}`);
        return `M0,${HEIGHT}${tops.join("")}V${HEIGHT}Z`;
      };
      const others = steps
        .map((_, step) => step)
        .filter((step) => step !== at)
        .map((step) => `<path d="${outline(row(step))}" fill="none" opacity="0.12"/>`);
      /** @type {(x: number, anchor: string, value: string) => string} */
      const text = (x, anchor, value) =>
        `<text x="${x}" y="${HEIGHT + FOOT - 4}" text-anchor="${anchor}">${value}</text>`;
      place.innerHTML = `<svg viewBox="0 0 ${WIDTH} ${HEIGHT + FOOT}" role="img"
        style="width: 100%; max-height: 260px; display: block; font-size: 11px">
        <g stroke="currentColor" style="color: var(--nbp-ink)">${others.join("")}</g>
        <path class="histogram" d="${outline(row(at))}" style="fill: var(--nbp-brand)"
          fill-opacity="0.75"/>
        <g style="fill: var(--nbp-ink)">${text(0, "start", edges[0].toPrecision(3))}
        ${text(WIDTH, "end", edges[n].toPrecision(3))}</g></svg>`;
      const total = row(at).reduce((a, b) => a + (b || 0), 0);
      const label = `${name} at step ${steps[at]}: ${Math.round(total)} elements`;
      place.firstElementChild?.setAttribute("aria-label", label);
    });
  },
};
