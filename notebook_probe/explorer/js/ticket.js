/** What became of one click on Attach or Detach, in one line. */

import { element, setAttribute, setText } from "./dom.js";
import { grouped } from "./format.js";

const DRAWN_AT_ONCE = 4;

export function createTicket({ state, selection, signal }) {
  const sign = element("span", { class: "nbp-sign", "aria-hidden": "true" });
  const words = element("span");
  const show = element(
    "button",
    {
      class: "nbp-link",
      type: "button",
      title: "Draw these series",
      "data-action": "draw",
      hidden: "",
    },
    "draw",
  );
  const el = element(
    "div",
    { class: "nbp-ticket", role: "status", "data-role": "ticket", "data-state": "" },
    sign,
    words,
    show,
  );
  let followed = null; // { id, verb, where, quantity }

  show.addEventListener("click", draw, { signal });
  state.on("status", refresh);

  function follow(id, verb, where, quantity) {
    followed = { id, verb, where, quantity };
    say("sent", "…", "sent, waiting for the kernel");
  }

  function refresh() {
    const row = followed && state.status.tickets.find((one) => one.id === followed.id);
    if (!row) return;
    const queued = `queued ${grouped(row.queued_step)}`;
    if (row.state === "queued") say("queued", "…", `queued at step ${grouped(row.queued_step)}`);
    else if (row.state === "refused") say("refused", "✕", row.text);
    else say("applied", "✓", `${queued}, ${followed.verb} at step ${grouped(row.applied_step)}`);
    setAttribute(el, "title", row.text || null);
    show.hidden = !(row.state === "applied" && followed.verb === "attached" && followed.quantity);
  }

  function say(outcome, mark, text) {
    setAttribute(el, "data-state", outcome);
    setText(sign, mark);
    setText(words, text);
    show.hidden = true;
  }

  function draw() {
    const added = followed.where
      .slice(0, DRAWN_AT_ONCE)
      .map((module) => [module, followed.quantity]);
    const known = new Set(state.selection.series.map(String));
    const series = [...state.selection.series, ...added.filter((one) => !known.has(String(one)))];
    selection.change({ series, home: state.selection.home || followed.quantity });
  }

  return { el, follow };
}
