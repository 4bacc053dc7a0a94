/** Detection of a kernel that does not send a due answer or report. */

const SILENT_MS = 3000;
/** @type {Record<string, string>} what a front end calls its kernel -> what became of ours */
const GONE = { dead: "dead", terminating: "dead", restarting: "restarted", autorestarting: "restarted" };
const REPORTING = ["waiting", "training", "paused"]; // states in which the kernel says so again and again

/**
 * @param {PanelState} state
 * @param {() => boolean} isHidden whether the kernel knows that nobody looks
 * @param {() => string} kernelStatus as the front end knows it, "" where it does not
 */
export function createSilence(state, isHidden, kernelStatus) {
  let lastMessageMs = performance.now();
  /** @type {number | null} */
  let askedMs = null; // of the first request that has no answer yet
  let unreachable = false;
  let gone = ""; // what became of the kernel; a new one in its place says nothing to this panel

  /**
   * Silence is worth a word while an answer is due, or a report: one comes every second. An idle
   * kernel has nothing to say, so that an answer is waited for from the request on.
   */
  function check() {
    const { state: running, rate } = state.status;
    const patience = Math.max(SILENT_MS, rate ? 3000 / rate : 0); // a step may take long
    /** @type {(sinceMs: number) => boolean} */
    const isLate = (sinceMs) => performance.now() - sinceMs > patience;
    const overdue = (askedMs !== null && isLate(askedMs)) || (REPORTING.includes(running) && isLate(lastMessageMs));
    const late = overdue && !isHidden();
    const status = kernelStatus();
    gone ||= GONE[status] ?? "";
    const silent = state.model.live && (unreachable || late || gone !== "");
    const kernel = silent ? gone || status : "";
    if (silent === state.silent && kernel === state.kernel) return;
    state.silent = silent;
    state.kernel = kernel;
    state.emit("silence");
  }

  return {
    check,
    /** A message has come. */
    heard() {
      lastMessageMs = performance.now();
      askedMs = null;
      unreachable = false;
      gone = "";
    },
    /** A request is sent. */
    asked() {
      askedMs ??= performance.now();
    },
    /** The comm has gone with its kernel. */
    lost() {
      unreachable = true;
      check();
    },
    /** From now on reports are due. */
    restart() {
      lastMessageMs = performance.now();
    },
  };
}
