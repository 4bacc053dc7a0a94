/**
 * A choice of series and a slider over their steps; what is shown of a step is the caller's.
 * @template {SteppedSeries} Series
 * @param {SteppedElement} element
 * @param {Series[]} series
 * @param {(place: HTMLElement, one: Series, at: number) => void} show
 */
function stepper(element, series, show) {
  const known = element.stepper ?? { name: series[0].name, step: Infinity };
  const state = "choice" in known && element.querySelector("input") ? known : controls(element, known);
  element.stepper = state;
  const { choice, slider, label, place } = state;
  const names = series.map(({ name }) => name);
  if (choice.options.length !== names.length || names.some((n, i) => choice.options[i].value !== n))
    choice.replaceChildren(...names.map((name) => new Option(name)));
  const chosen = () => series.find(({ name }) => name === state.name) ?? series[0];
  const draw = () => {
    const one = chosen();
    const later = one.steps.findIndex((step) => step > state.step);
    const at = later < 0 ? one.steps.length - 1 : Math.max(later - 1, 0);
    choice.value = one.name;
    choice.hidden = series.length < 2;
    slider.max = String(one.steps.length - 1);
    slider.value = String(at);
    label.textContent = `step ${one.steps[at]}`;
    slider.setAttribute("aria-valuetext", label.textContent);
    show(place, one, at);
  };
  choice.onchange = () => {
    state.name = choice.value;
    draw();
  };
  slider.oninput = () => {
    const { steps } = chosen();
    state.step = +slider.value === steps.length - 1 ? Infinity : steps[+slider.value];
    draw();
  };
  draw();
}

/**
 * The controls in their element, with what was chosen before.
 * @param {HTMLElement} element
 * @param {{ name: string, step: number }} known
 * @returns {StepperState}
 */
function controls(element, { name, step }) {
  const choice = document.createElement("select");
  const slider = document.createElement("input");
  const label = document.createElement("output");
  const place = document.createElement("div");
  const row = document.createElement("div");
  slider.type = "range";
  slider.min = "0";
  choice.setAttribute("aria-label", "series");
  slider.setAttribute("aria-label", "step");
  row.style = "display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 4px 0";
  slider.style = "flex: 1 1 160px; min-width: 0; accent-color: var(--nbp-brand)";
  choice.style =
    "max-width: 45%; color: var(--nbp-ink); background: transparent; font: inherit";
  label.style = "color: var(--nbp-ink); min-width: 6em";
  row.append(choice, slider, label);
  element.replaceChildren(row, place);
  return { name, step, choice, slider, label, place };
}
