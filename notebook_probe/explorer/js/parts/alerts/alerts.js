/** What is wrong: the newest cause in the foot, all of them in a drawer below it. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { createAlertList } from "./alert_list.js";
import { causesOf, heaviest, isSevere } from "./causes.js";
import { createMark, setSeverity } from "./mark.js";
import { createPausing, SEVERE } from "./pausing.js";
import { createRulesWatch, watchText } from "./rules_watch.js";
import { alertsText, causesText, findingWords } from "./words.js";

export function createAlerts(parts) {
  const { state, drawer, signal } = parts;
  const mark = createMark("warning");
  const before = element("span");
  const place = element("code");
  const rest = element("span");
  const newest = element("span", { class: "nbp-newest" }, mark, element("span", {}, before, place, rest));
  const count = element("button", {
    class: "nbp-alert-count",
    type: "button",
    "data-action": "alerts",
    "aria-expanded": "false",
  });
  const chevron = element("i", { class: "nbp-chevron", "aria-hidden": "true" });
  const number = element("span");
  count.append(number, chevron);
  const none = element("span", { class: "nbp-soft" });
  const quiet = element("span", { class: "nbp-no-alerts" }, none);
  const el = element("div", { class: "nbp-alerts-line" }, newest, count, quiet);
  const watch = createRulesWatch(parts);
  const pausing = createPausing(SEVERE, "severe ones pause the run", parts).el;
  const about = element("span", { class: "nbp-alerts-about" }, pausing);
  const list = createAlertList(parts, about);

  count.addEventListener("click", toggle, { signal });
  for (const topic of ["alerts", "model", "rules", "status", "history"]) state.on(topic, refresh);

  function refresh() {
    const causes = causesOf(state);
    const last = causes.at(-1) ?? null;
    for (const node of [newest, count]) setHidden(node, !last);
    setHidden(quiet, Boolean(last));
    const home = last ? about : quiet;
    if (watch.parentNode !== home) home.insertBefore(watch, last ? pausing : null);
    if (last) describe(last, causes.length);
    else setText(none, `${noneText(state)}${watchText(state.parts.rules.rules) ? " · " : ""}`);
    if (!drawer.isOpenAt(count)) return;
    if (last) list.fill();
    else drawer.close();
  }

  function describe(last, n) {
    const words = findingWords(last);
    setSeverity(mark, heaviest(last));
    setText(before, words.before);
    setText(place, words.place);
    setText(rest, words.rest);
    setAttribute(newest, "title", last.text);
    const { alerts } = state;
    const left = alertsBefore(state);
    setText(number, causesText(n) + (left ? ` · ${alertsText(left)} before` : ""));
    const where = left ? " on this branch; those before are of the line that was left" : "";
    setAttribute(count, "title", `${alertsText(alerts.length)}, ${alerts.filter(isSevere).length} severe${where} (n)`);
  }

  function toggle() {
    if (!drawer.isOpenAt(count)) list.fill();
    drawer.open({ anchor: count, label: "Alerts", content: list.el, closed: list.leave });
    if (drawer.isOpenAt(count)) list.scrollToNewest();
  }

  refresh();
  return {
    el,
    /** Open the drawer at the newest alert, or close it. */
    open() {
      if (!state.alerts.length) return;
      toggle();
      if (drawer.isOpenAt(count)) list.focusNewest();
      else count.focus();
    },
  };
}

function noneText(state) {
  const before = alertsBefore(state);
  return before ? `No alerts on this branch; ${grouped(before)} before` : "No alerts";
}

/** Those of the line that was left for this branch. */
function alertsBefore({ parts }) {
  return parts.history.left?.n_alerts ?? 0;
}
