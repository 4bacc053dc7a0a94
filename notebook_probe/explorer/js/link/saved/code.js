/** The lines that make this view from the record: the kernel's templates, filled here. */

/**
 * @typedef {{
 *   templates: SavedMessage["templates"],
 *   location: string,
 *   selection: PanelSelection,
 *   log: { heat: boolean, lines: boolean },
 * }} CodeParts
 */

/**
 * Text of Python; `log` says how what is drawn is scaled where nobody chose.
 * @param {CodeParts} parts
 */
export function codeOf({ templates, location, selection, log }) {
  const { home, log_x: logX, x_axis: axis, y_limits: limits } = selection;
  const series = selection.series.filter(([, quantity]) => !quantity.includes("[")); // an element is no quantity
  const window = windowOf(selection);
  const logHeat = selection.log_heat ?? log.heat;
  const heat = {
    home,
    name: home,
    window,
    norm: logHeat ? "log" : "linear",
    drawn: logHeat ? `.where(${home} > 0)` : "",
  };
  const lines = {
    series,
    window,
    x: axis === "time" ? "series.time" : "series.step",
    xscale: logX && axis !== "time" ? "symlog" : "linear",
    yscale: (selection.log_y ?? log.lines) ? "log" : "linear",
    xlabel: axis,
    limits: limits ? `, ylim=(${limits.join(", ")})` : "",
  };
  return [
    filled(templates.head, { location }),
    home ? filled(templates.heat, heat) : "",
    series.length ? filled(templates.lines, lines) : "",
  ].join("");
}

/**
 * Python's `str.format` as far as the templates use it; what JSON writes, Python reads.
 * @param {string} template
 * @param {Record<string, unknown>} values
 */
function filled(template, values) {
  return template.replace(/\{\{|\}\}|\{(\w+)(!r)?\}/g, (found, name, literal) => {
    if (!name) return found[0];
    return literal ? JSON.stringify(values[name]) : String(values[name]);
  });
}

/** @param {Pick<PanelSelection, "window">} selection */
function windowOf({ window }) {
  return window ? `.sel(step=slice(${Math.ceil(window[0])}, ${Math.floor(window[1])}))` : "";
}
