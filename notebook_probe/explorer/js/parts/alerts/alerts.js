/** Alerts: the newest cause in the footer, all of them in a drawer below it. */

import { element, setAttribute, setHidden, setText } from "../../dom.js";
import { grouped } from "../../format.js";
import { createAlertList } from "./alert_list.js";
import { createBoth, listedCauses } from "./both.js";
import { causesOf, heaviest, isSevere } from "./causes.js";
import { createMark, setSeverity } from "./mark.js";
import { createPausing, SEVERE } from "./pausing.js";
import { createRulesWatch, watchText } from "./rules_watch.js";
import { alertsText, causesText, findingWords, remarksText } from "./words.js";

/** @param {PanelParts} parts */
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
  const dot = element("span", { class: "nbp-between nbp-soft" });
  const quiet = element("span", { class: "nbp-no-alerts" }, none, dot);
  const el = element("div", { class: "nbp-alerts-line" }, newest, quiet, count);
  const watch = createRulesWatch(parts);
  const both = createBoth(parts, () => drawer.isOpenAt(count) || toggle());
  const pausing = createPausing(SEVERE, "severe ones pause the run", parts).el;
  const about = element("span", { class: "nbp-alerts-about" }, pausing);
  const list = createAlertList(parts, about);

  count.addEventListener("click", toggle, { signal });
  for (const topic of ["alerts", "model", "rules", "status", "history", "left", "looks"]) state.on(topic, refresh);

  function refresh() {
    const causes = causesOf(state);
    const last = causes.at(-1) ?? null;
    const n_listed = listedCauses(state).length + state.remarks.length;
    setHidden(newest, !last);
    setHidden(count, !n_listed);
    setHidden(quiet, Boolean(last));
    if (last) stand(about, about.firstChild);
    else stand(quiet, dot);
    if (last) describe(last, causes.length);
    else describeNone();
    if (!drawer.isOpenAt(count)) return;
    if (n_listed) list.fill();
    else drawer.close();
  }

  /**
   * Beside what is said of alerts: in the drawer, or in the foot where there are none.
   * @param {HTMLElement} home
   * @param {Node | null} behind
   */
  function stand(home, behind) {
    if (both.parentNode === home) return;
    home.insertBefore(both, behind);
    if (home === about) home.insertBefore(watch, pausing);
    else home.append(watch);
  }

  function describeNone() {
    setText(none, `${noneText(state)} `);
    setText(dot, watchText(state.parts.rules.rules) ? " · " : "");
    const n = alertsBefore(state);
    const before = n ? [`${grouped(n)} before`] : [];
    setText(number, [...before, ...remarks(state)].join(" · "));
    setAttribute(count, "title", n ? "Alerts of the parent branch (n)" : "Findings that may be intended (n)");
  }

  /**
   * @param {ListedFinding} last
   * @param {number} n
   */
  function describe(last, n) {
    const words = findingWords(last);
    setSeverity(mark, heaviest(last));
    setText(before, words.before);
    setText(place, words.place);
    setText(rest, words.rest);
    setAttribute(newest, "title", last.text);
    const { alerts } = state;
    const left = alertsBefore(state);
    const earlier = left ? [`${alertsText(left)} before`] : [];
    setText(number, [countText(alerts.length, n), ...earlier, ...remarks(state)].join(" · "));
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
      if (count.hidden) return;
      toggle();
      if (drawer.isOpenAt(count)) list.focusNewest();
      else count.focus();
    },
  };
}

/**
 * "7 alerts, 1 cause"; where each alert is a cause, their number alone.
 * @param {number} n
 * @param {number} n_causes
 */
function countText(n, n_causes) {
  return n === n_causes ? alertsText(n) : `${alertsText(n)}, ${causesText(n_causes)}`;
}

/** @param {PanelState} state */
function noneText(state) {
  const before = alertsBefore(state);
  if (!before) return "No alerts";
  return `No alerts on this branch${state.both ? "" : `; ${grouped(before)} before`}`;
}

/** @param {Pick<PanelState, "remarks">} state */
function remarks({ remarks: { length } }) {
  return length ? [remarksText(length)] : [];
}

/**
 * Those of the line that was left for this branch.
 * @param {Pick<PanelState, "parts">} state
 */
function alertsBefore({ parts }) {
  return parts.history.left?.n_alerts ?? 0;
}
