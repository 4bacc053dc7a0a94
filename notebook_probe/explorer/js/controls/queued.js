/** Where a request waits: of a run whose loop does not run nobody can say at which step it acts. */

const WITHOUT_LOOP = ["waiting", "idle"];

/**
 * @param {Pick<PanelState, "status">} state
 * @param {string} text while the loop runs
 */
export function queuedText({ status }, text) {
  return WITHOUT_LOOP.includes(status.state) ? "waits for the next training step" : text;
}
