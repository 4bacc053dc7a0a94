/** Runs grouped by a column: the mean loss of each group, its lowest and highest run, and how many. */

import { element, penOf, setAttribute, setHidden, setText } from "../../../js/dom.js";
import { grouped, significant } from "../../../js/format.js";
import { valueAt } from "../../../js/maps.js";
import { rgbOf, seriesColour } from "../../../js/plots/colour.js";
import { linearTicks, logTicks } from "../../../js/plots/ticks.js";
import { ranked } from "./axes.js";

const HEIGHT = 260;
const MARGIN = { left: 62, right: 14, top: 12, bottom: 24 };
const WAIT_MS = 200; // after the last change of which rows are wanted
const MOST = 12; // groups that can be told apart
const MOST_RUNS = 1000; // that the kernel reads for one picture
const WIDE_RATIO = 30; // of the largest value to the least one: a logarithmic axis

/**
 * `ask(by)` has the kernel group the rows in sight; `leave(column, text)` leaves one group in the table.
 * @param {{
 *   rows: TableRows,
 *   theme: Theme,
 *   ask: (by: string) => void,
 *   choose: (by: string) => void,
 *   leave: (column: string, text: string) => void,
 *   signal: AbortSignal,
 * }} parts
 */
export function createGroups({ rows, theme, ask, choose, leave, signal }) {
  const select = element("select", { "aria-label": "grouped by" });
  const said = element("span", { class: "nbp-soft", role: "status" });
  const choices = element("div", { class: "nbp-runs-choices" }, element("label", {}, "grouped by ", select), said);
  const canvas = element("canvas", { class: "nbp-runs-canvas", role: "img" });
  const list = element("div", { class: "nbp-runs-groups", role: "group", "aria-label": "Groups" });
  const el = element("div", { hidden: "" }, choices, canvas, list);
  /** @type {GroupsMessage | null} */
  let found = null;
  let asked = "";
  let timer = 0;

  select.addEventListener("change", () => choose(select.value), { signal });
  list.addEventListener("click", ({ target }) => {
    const text = target.closest("button")?.dataset.text;
    if (found && text !== undefined) leave(found.by, text);
  }, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));

  /** @param {boolean} isShown */
  function show(isShown) {
    setHidden(el, !isShown);
    if (!isShown) return;
    const names = ranked(rows).filter(isGroup);
    const by = names.includes(rows.picture.by) ? rows.picture.by : (names[0] ?? "");
    if ([...select.options].map(({ value }) => value).join("\n") !== names.join("\n")) {
      select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
    }
    select.value = by;
    const key = [by, ...[...rows.order].sort((one, other) => one - other)].join(" ");
    if (by && key !== asked) {
      asked = key;
      clearTimeout(timer);
      timer = setTimeout(() => ask(by), found ? WAIT_MS : 0);
    }
    if (!by) setText(said, `Show a column with 2 to ${MOST} different values`);
    else paint();
  }

  /** @param {string} name */
  function isGroup(name) {
    const { texts } = valueAt(rows.columns, name);
    const n = new Set(rows.order.map((at) => texts[at]).filter(Boolean)).size;
    return n > 1 && n <= MOST && n < rows.order.length;
  }

  function paint() {
    if (!found || !canvas.clientWidth) return;
    const { groups, by, scalar, n_read: n, n_runs: all, problem } = found;
    const ground = rgbOf(theme.read().ground);
    const colours = groups.map((_, k) => seriesColour(k, ground));
    paintGroups(canvas, groups, colours, theme.read());
    const few = rows.order.length > MOST_RUNS ? `, of the first ${grouped(MOST_RUNS)} runs` : "";
    const whole = `mean of ${scalar || "no loss"}${few}; the band is its lowest and highest run`;
    setText(said, problem || (n < all ? `reading ${grouped(n)} of ${grouped(all)} runs` : whole));
    setAttribute(canvas, "aria-label", `${scalar} of ${groups.length} groups of runs by ${by}`);
    setAttribute(canvas, "data-groups", JSON.stringify(groups.map(({ text, n: count, last }) => [text, count, last])));
    list.replaceChildren(...groups.map((group, k) => groupButton(by, group, colours[k])));
  }

  /** @param {GroupsMessage} message */
  function told(message) {
    found = message;
    paint();
  }

  return { el, show, told };
}

/**
 * @param {string} by
 * @param {RunGroupLine} group
 * @param {string} colour
 */
function groupButton(by, { text, n, last, std }, colour) {
  const swatch = element("i", { class: "nbp-swatch", style: `background: ${colour}`, "aria-hidden": "true" });
  const spread = std === null ? "" : ` ± ${significant(std, 2)}`;
  const words = `N ${grouped(n)}, last ${significant(last)}${spread}`;
  const title = `Leave only the runs with ${by} ${text} in the table`;
  return element("button", { type: "button", "data-text": text, title }, swatch, element("b", {}, text), ` ${words}`);
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {RunGroupLine[]} groups
 * @param {string[]} lines
 * @param {Colours} colours
 */
function paintGroups(canvas, groups, lines, colours) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(HEIGHT * ratio)];
  const pen = penOf(canvas);
  pen.scale(ratio, ratio);
  pen.font = colours.font;
  const ends = groups.flatMap(({ low, high }) => [...low, ...high]);
  const values = ends.filter((one) => one !== null);
  if (!values.length) return;
  const box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: HEIGHT - MARGIN.bottom };
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const isLog = least > 0 && most >= WIDE_RATIO * least;
  const scale = (isLog ? logTicks : linearTicks)(least, most, 5);
  const steps = linearTicks(0, Math.max(...groups.map(({ x }) => x.at(-1) ?? 0)), 6);
  const scaled = isLog ? Math.log : (/** @type {number} */ value) => value;
  const [floor, tall] = [scaled(scale.low), (box.bottom - box.top) / (scaled(scale.high) - scaled(scale.low))];
  /** @param {number} value */
  const y = (value) => box.bottom - (scaled(value) - floor) * tall;
  /** @param {number} step */
  const x = (step) => box.left + (step / (steps.high || 1)) * (box.right - box.left);
  gridOf(pen, { box, scale, steps, x, y }, colours);
  groups.forEach((group, k) => groupOf(pen, group, lines[k], { x, y }));
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {{
 *   box: { left: number, right: number, top: number, bottom: number },
 *   scale: ReturnType<typeof linearTicks>,
 *   steps: ReturnType<typeof linearTicks>,
 *   x: (step: number) => number,
 *   y: (value: number) => number,
 * }} drawn
 * @param {Colours} colours
 */
function gridOf(pen, { box, scale, steps, x, y }, colours) {
  [pen.strokeStyle, pen.fillStyle, pen.lineWidth, pen.textBaseline] = [colours.line, colours.soft, 1, "middle"];
  pen.textAlign = "right";
  for (const { value, label } of scale.ticks) {
    pen.beginPath();
    pen.moveTo(box.left, y(value));
    pen.lineTo(box.right, y(value));
    pen.stroke();
    pen.fillText(label, box.left - 6, y(value));
  }
  pen.textAlign = "center";
  for (const { value } of steps.ticks) pen.fillText(grouped(value), x(value), box.bottom + 13);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {RunGroupLine} group
 * @param {string} colour
 * @param {{ x: (step: number) => number, y: (value: number) => number }} place
 */
function groupOf(pen, group, colour, { x, y }) {
  const known = group.x.map((_, k) => k).filter((k) => group.mean[k] !== null);
  [pen.fillStyle, pen.strokeStyle, pen.lineWidth] = [colour, colour, 2];
  pen.beginPath();
  for (const k of known) pen.lineTo(x(Number(group.x[k])), y(Number(group.high[k])));
  for (const k of [...known].reverse()) pen.lineTo(x(Number(group.x[k])), y(Number(group.low[k])));
  pen.globalAlpha = 0.14;
  pen.fill();
  pen.globalAlpha = 1;
  pen.beginPath();
  for (const k of known) pen.lineTo(x(Number(group.x[k])), y(Number(group.mean[k])));
  pen.stroke();
}
