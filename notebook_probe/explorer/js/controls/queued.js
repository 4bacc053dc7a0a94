/** Text about a waiting request; if the loop does not run, its step is unknown. */

const WITHOUT_LOOP = ["waiting", "idle"];

/**
 * @param {Pick<PanelState, "status">} state
 * @param {string} text while the loop runs
 */
export function queuedText({ status }, text) {
  return WITHOUT_LOOP.includes(status.state) ? "waits for the next training step" : text;
}
