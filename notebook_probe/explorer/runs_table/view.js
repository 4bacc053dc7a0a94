// A table of runs: a click on a head sorts, a click on a row chooses its run.

function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Up, down, and back to the order in which the runs came. */
function nextOrder(sorted, column) {
  if (sorted.column !== column) return { column, down: false };
  return sorted.down ? { column: -1, down: false } : { column, down: true };
}

function orderOf(table, { column, down }) {
  if (column < 0) return table.runs.map((_, place) => place);
  return (down ? table.down : table.up)[column];
}

function headOf(table, sorted, sort) {
  const cells = table.columns.map((name, column) => {
    const isSorted = sorted.column === column;
    const mark = isSorted ? (sorted.down ? " ▼" : " ▲") : "";
    const [last, ...above] = name.split(".").reverse();
    const button = made("button", { type: "button", title: `sort by ${name}` });
    button.append(
      made("small", { textContent: above.reverse().join(".") }),
      made("span", { textContent: last + mark }),
    );
    button.addEventListener("click", () => sort(column));
    const cell = made("th", { scope: "col" }, button);
    cell.setAttribute("aria-sort", isSorted ? (sorted.down ? "descending" : "ascending") : "none");
    cell.classList.toggle("nbp-runs-number", table.numeric[column]);
    return cell;
  });
  return made("thead", {}, made("tr", {}, ...cells));
}

function rowOf(table, place, choose) {
  const cells = table.cells[place].map((text, column) => {
    const cell = made(column ? "td" : "th", { textContent: text });
    cell.classList.toggle("nbp-runs-number", table.numeric[column]);
    return cell;
  });
  const row = made("tr", { tabIndex: 0, title: `open ${table.runs[place]}` }, ...cells);
  row.dataset.run = table.runs[place];
  row.addEventListener("click", () => choose(table.runs[place]));
  row.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(table.runs[place]);
  });
  return row;
}

function render({ model, el }) {
  let sorted = { column: -1, down: false };
  const scroller = made("div", { className: "nbp-runs-rows" });
  const foot = made("p", { className: "nbp-runs-foot" });
  foot.setAttribute("role", "status");
  const root = made("div", { className: "nbp-runs" }, scroller, foot);

  const choose = (run) => {
    model.set("chosen", run);
    model.save_changes();
    tell();
  };
  const tell = () => {
    const { runs } = model.get("table");
    const chosen = model.get("chosen");
    for (const row of scroller.querySelectorAll("tbody tr")) {
      row.setAttribute("aria-selected", String(row.dataset.run === chosen));
    }
    const hint = chosen ? chosen : "click a head to sort, a row to open the run";
    foot.textContent = model.get("said") || `${runs.length} runs · ${hint}`;
    foot.classList.toggle("nbp-runs-problem", Boolean(model.get("said")));
  };
  const draw = () => {
    const table = model.get("table");
    const body = made("tbody", {}, ...orderOf(table, sorted).map((at) => rowOf(table, at, choose)));
    const head = headOf(table, sorted, (column) => {
      sorted = nextOrder(sorted, column);
      draw();
      scroller.querySelectorAll("thead button")[column].focus();
    });
    scroller.replaceChildren(made("table", {}, head, body));
    tell();
  };

  const heard = { "change:table": draw, "change:chosen": tell, "change:said": tell };
  for (const [what, run] of Object.entries(heard)) model.on(what, run);
  el.append(root);
  draw();
  return () => {
    for (const [what, run] of Object.entries(heard)) model.off(what, run);
  };
}

export default { render };
