const PLAY_MS = 500;
const STEP_CHOSEN = "nbp-summary-step";

/**
 * A choice of series and a slider over their steps; what is shown of a step is the caller's. All
 * views of one panel are at the same step; `▶` goes through the steps, two each second.
 * @template {SteppedSeries} Series
 * @param {SteppedElement} element
 * @param {Series[]} series
 * @param {(place: HTMLElement, one: Series, at: number) => void} show
 */
function stepper(element, series, show) {
  /** @returns {HTMLElement & { summaryStep?: number }} */
  const panel = () => element.closest(".nbp-panel") ?? element; // a view is first drawn, then put there
  const known = element.stepper ?? { name: series[0].name };
  const state = "choice" in known && element.querySelector("input") ? known : controls(element, known);
  element.stepper = state;
  const { choice, slider, label, place, play } = state;
  const names = series.map(({ name }) => name);
  if (choice.options.length !== names.length || names.some((n, i) => choice.options[i].value !== n))
    choice.replaceChildren(...names.map((name) => new Option(name)));
  const chosen = () => series.find(({ name }) => name === state.name) ?? series[0];
  const draw = () => {
    const one = chosen();
    const at = placeOf(one.steps, panel().summaryStep ?? Infinity);
    choice.value = one.name;
    choice.hidden = series.length < 2;
    slider.max = String(one.steps.length - 1);
    slider.value = String(at);
    label.textContent = `step ${one.steps[at]}`;
    slider.setAttribute("aria-valuetext", label.textContent);
    show(place, one, at);
  };
  /** @param {number} at */
  const go = (at) => {
    const { steps } = chosen();
    panel().summaryStep = at >= steps.length - 1 ? Infinity : steps[at];
    document.dispatchEvent(new CustomEvent(STEP_CHOSEN, { detail: panel() }));
  };
  const stop = () => {
    clearInterval(state.timer);
    state.timer = 0;
    play.textContent = "▶";
    play.setAttribute("aria-label", "play");
  };
  const next = () => {
    const at = Number(slider.value) + 1;
    if (!element.isConnected || at >= chosen().steps.length) return stop();
    return go(at);
  };
  /** @param {CustomEvent} event */
  const followed = ({ detail }) => {
    if (!element.isConnected) state.follow?.abort();
    else if (detail === panel()) draw();
  };
  choice.onchange = () => {
    state.name = choice.value;
    draw();
  };
  slider.oninput = () => {
    stop();
    go(Number(slider.value));
  };
  play.onclick = () => {
    if (state.timer) return stop();
    if (Number(slider.value) >= chosen().steps.length - 1) go(0);
    state.timer = setInterval(() => next(), PLAY_MS);
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "pause");
    return undefined;
  };
  state.follow?.abort();
  state.follow = new AbortController();
  const { signal } = state.follow;
  document.addEventListener(STEP_CHOSEN, (event) => followed(/** @type {CustomEvent} */ (event)), { signal });
  clearInterval(state.timer);
  if (state.timer) state.timer = setInterval(() => next(), PLAY_MS); // of the newest series
  draw();
}

/**
 * The place of the last step that is not later.
 * @param {number[]} steps
 * @param {number} step
 */
function placeOf(steps, step) {
  const later = steps.findIndex((one) => one > step);
  return later < 0 ? steps.length - 1 : Math.max(later - 1, 0);
}

/**
 * The content of a step, next to that of the same series of another run, if one is compared.
 * @template {SteppedSeries} Series
 * @param {HTMLElement} place
 * @param {{ run: string, one: WithBeside<Series>, at: number, make: (one: Series, at: number) => HTMLElement }} shown
 */
function sideBySide(place, { run, one, at, make }) {
  const step = one.steps[at];
  const figures = [figureOf(one.beside ? `${run}, step ${step}` : "", make(one, at))];
  if (one.beside) {
    const there = placeOf(one.beside.steps, step);
    const name = `${one.beside.run}, step ${one.beside.steps[there]}`;
    figures.push(figureOf(name, make(one.beside, there)));
  }
  const row = document.createElement("div");
  row.style = "display: flex; flex-wrap: wrap; gap: 4px 16px";
  row.append(...figures);
  place.replaceChildren(row);
}

/**
 * @param {string} text
 * @param {HTMLElement} content
 */
function figureOf(text, content) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  figure.style = "flex: 1 1 240px; min-width: 0; margin: 0";
  caption.style = "color: var(--nbp-soft); font-size: 12px";
  caption.textContent = text;
  figure.append(caption, content);
  return figure;
}

/**
 * The controls in their element, with what was chosen before.
 * @param {HTMLElement} element
 * @param {{ name: string }} known
 * @returns {StepperState}
 */
function controls(element, { name }) {
  const choice = document.createElement("select");
  const play = document.createElement("button");
  const slider = document.createElement("input");
  const label = document.createElement("output");
  const place = document.createElement("div");
  const row = document.createElement("div");
  slider.type = "range";
  slider.min = "0";
  play.type = "button";
  play.textContent = "▶";
  choice.setAttribute("aria-label", "series");
  slider.setAttribute("aria-label", "step");
  play.setAttribute("aria-label", "play");
  row.style = "display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 4px 0";
  slider.style = "flex: 1 1 160px; min-width: 0; accent-color: var(--nbp-brand)";
  play.style = "width: 34px; padding: 1px 0; line-height: 20px";
  choice.style =
    "max-width: 45%; color: var(--nbp-ink); background: transparent; font: inherit";
  label.style = "color: var(--nbp-ink); min-width: 6em";
  row.append(choice, play, slider, label);
  element.replaceChildren(row, place);
  return { name, choice, play, slider, label, place, timer: 0, follow: null };
}
