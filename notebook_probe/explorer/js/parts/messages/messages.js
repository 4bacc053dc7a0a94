/** A word that opens the dialog of messages: to whom the run sends them, and a form for one more. */

import { element, setHidden, setText } from "../../dom.js";
import { createMessageForm } from "./form.js";

/** @param {PanelParts} parts */
export function createMessages(parts) {
  const { state, link, dialogs, signal } = parts;
  const word = element("button", {
    class: "nbp-link",
    type: "button",
    "data-action": "messages",
    "aria-haspopup": "dialog",
    "aria-expanded": "false",
    title: "Send alerts and the end of the training to a chat or a mailbox",
    hidden: "",
  });
  const list = element("div", { class: "nbp-messages-rows" });
  const form = createMessageForm(parts);
  const content = element("div", { class: "nbp-messages" }, element("h3", {}, "Messages"), list, form.el);
  word.addEventListener("click", open, { signal });
  for (const topic of ["messages", "model"]) state.on(topic, refresh);

  function open() {
    fill();
    dialogs.open({ anchor: word, label: "Messages", content, closed: form.clear });
  }

  function fill() {
    list.replaceChildren(...state.parts.messages.rows.map(rowOf));
  }

  /** @param {MessagesRow} row */
  function rowOf(row) {
    const end = element("button", { type: "button", class: "nbp-link", "data-ends": String(row.id) }, "end");
    end.addEventListener("click", () => link.send("notify_end", { which: row.id }), { signal });
    const sent = `${row.n_sent} sent`;
    const about = element("span", { class: "nbp-soft" }, ` ${row.on.join(", ")} · ${row.problem || sent} `);
    return element("div", { class: "nbp-rule-row" }, element("code", {}, row.kind), about, end);
  }

  function refresh() {
    const { live, rows } = state.parts.messages;
    setHidden(word, !(state.model.live && live));
    const kinds = [...new Set(rows.map(({ kind }) => kind))];
    setText(word, rows.length ? `messages by ${kinds.join(", ")}` : "get messages");
    if (list.isConnected) fill();
  }

  refresh();
  return { el: word };
}
