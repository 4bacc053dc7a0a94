/** Link in the footer, and in the drawer above it the checks of the model, the worst first. */

import { element, isGreyed, setAttribute, setGreyed, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { createTicket } from "../ticket.js";

const ABOUT =
  "Checks the model with the inputs of its next training call, or with the batch of run.probe_batch: " +
  "who trains, whether samples or positions change each other, whether evaluation repeats. Nothing changes.";
const TITLE = "Check the model on a copy, between two steps";
/** @type {Record<string, string>} */
const VERDICTS = { wrong: "wrong", note: "may be intended", unknown: "not checked", good: "good" };

/** @param {PanelParts} parts */
export function createExamination({ state, link, drawer, signal }) {
  const word = element(
    "button",
    {
      class: "nbp-link",
      type: "button",
      "data-action": "examination",
      "aria-expanded": "false",
      title: "Checks of the model: what is wrong before it is trained for long",
      hidden: "",
    },
    "Examine",
  );
  const about = element("p", { class: "nbp-soft", role: "status" });
  const button = element("button", { type: "button", "data-action": "examine" }, "Examine the model");
  const ticket = createTicket({ state });
  const rows = element("ul", { class: "nbp-findings" });
  const head = element("div", { class: "nbp-examination-head" }, button, ticket.el);
  const el = element("div", { class: "nbp-examination" }, about, rows, head);
  let shown = "";

  word.addEventListener("click", toggle, { signal });
  button.addEventListener("click", ask, { signal });
  for (const topic of ["examination", "model", "status"]) state.on(topic, refresh);

  function toggle() {
    drawer.open({ anchor: word, label: "Examination", content: el });
    refresh();
  }

  function ask() {
    if (!isGreyed(button)) ticket.follow([link.ask("examine", {})]);
  }

  function refresh() {
    const { live, step, title, rows: found } = state.parts.examination;
    setHidden(word, !(live || step >= 0));
    setAttribute(word, "data-found", step);
    if (!drawer.isOpenAt(word)) return;
    setText(about, step < 0 ? ABOUT : `${title}, at step ${grouped(step)}`);
    setHidden(head, !live);
    setGreyed(button, state.status.can.examine ?? "", TITLE);
    ticket.describe();
    const wanted = JSON.stringify(found);
    if (wanted === shown) return;
    shown = wanted;
    rows.replaceChildren(...found.map(rowOf));
  }

  refresh();
  return { word };
}

/** @param {[string, string, string, string]} finding */
function rowOf([verdict, check, text, advice]) {
  const kind = element("b", { class: "nbp-verdict", "data-verdict": verdict }, VERDICTS[verdict] ?? verdict);
  const said = element("span", {}, element("b", {}, check), `: ${text}`);
  if (advice) said.append(element("code", {}, `try: ${advice}`));
  return element("li", {}, kind, said);
}
