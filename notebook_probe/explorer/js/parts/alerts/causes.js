/** Alerts as the kernel groups them: causes, with consequences below each. */

/**
 * [{ key, …first alert, modules, where, sentence, below: [finding, …] }], the newest cause last.
 * @param {Pick<PanelState, "alerts" | "findings">} state
 * @returns {ListedFinding[]}
 */
export function causesOf({ alerts, findings }) {
  const byNumber = new Map(alerts.map((alert) => [alert.number, alert]));
  /** @type {Map<number, ListedFinding>} */
  const causes = new Map(); // number of the first alert -> the cause
  for (const { first, cause, ...words } of findings) {
    const alert = byNumber.get(first);
    if (!alert) continue; // older than the alerts that are listed
    /** @type {ListedFinding} */
    const finding = { ...alert, ...words, key: `${first} ${alert.step} ${alert.text}`, below: [] };
    const above = cause === null ? null : causes.get(cause);
    if (above) above.below.push(finding);
    else causes.set(first, finding);
  }
  return [...causes.values()];
}

/**
 * "severe" where it, or anything that came of it, is.
 * @param {Pick<ListedFinding, "severity" | "below">} finding
 */
export function heaviest({ severity, below }) {
  return [severity, ...below.map((one) => one.severity)].includes("severe") ? "severe" : severity;
}

/** @param {Pick<AlertRow, "severity">} alert */
export function isSevere({ severity }) {
  return severity === "severe";
}
