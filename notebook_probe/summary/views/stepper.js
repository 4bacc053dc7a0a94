/** A choice of series and a slider over their steps; what is shown of a step is the caller's. */
function stepper(element, series, show) {
  const state = (element.stepper ??= { name: series[0].name, step: Infinity });
  if (!element.querySelector("input")) {
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
    choice.onchange = () => {
      state.name = choice.value;
      element.draw();
    };
    slider.oninput = () => {
      const { steps } = element.chosen();
      state.step = +slider.value === steps.length - 1 ? Infinity : steps[+slider.value];
      element.draw();
    };
    Object.assign(state, { choice, slider, label, place });
  }
  const { choice, slider, label, place } = state;
  const names = series.map(({ name }) => name);
  if (choice.options.length !== names.length || names.some((n, i) => choice.options[i].value !== n))
    choice.replaceChildren(...names.map((name) => new Option(name)));
  element.chosen = () => series.find(({ name }) => name === state.name) ?? series[0];
  element.draw = () => {
    const one = element.chosen();
    const later = one.steps.findIndex((step) => step > state.step);
    const at = later < 0 ? one.steps.length - 1 : Math.max(later - 1, 0);
    choice.value = one.name;
    choice.hidden = series.length < 2;
    slider.max = one.steps.length - 1;
    slider.value = at;
    label.textContent = `step ${one.steps[at]}`;
    slider.setAttribute("aria-valuetext", label.textContent);
    show(place, one, at);
  };
  element.draw();
}
