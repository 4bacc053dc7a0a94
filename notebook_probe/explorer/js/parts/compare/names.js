/** Runs by the names under which they are listed. */

/**
 * The name of a run that is listed; else the end of its location.
 * @param {Pick<PanelState, "parts">} state
 * @param {string} run
 */
export function runName({ parts }, run) {
  const row = parts.compare.runs.find((one) => one.run === run);
  return row?.name ?? run.replace(/\/+$/, "").replace(/^.*\//, "").replace(/\.zarr(\.zip)?$/, "");
}

/**
 * What the heat map is divided by.
 * @param {PanelState} state
 */
export function ratioName(state) {
  const { grouped, others, ratio_to: to } = state.selection;
  return grouped && others.length > 1 ? `the group of ${others.length}` : runName(state, to);
}

/**
 * "now", "today 01:52", "yesterday", "20 Nov", "20 Nov 2023"; "" where it is not known.
 * @param {number} ms
 * @param {Date} [now]
 */
export function begunText(ms, now = new Date()) {
  if (!ms) return "";
  const begun = new Date(ms);
  const days = Math.round((midnight(now) - midnight(begun)) / 86_400_000);
  const clock = `${twoDigits(begun.getHours())}:${twoDigits(begun.getMinutes())}`;
  if (days <= 0) return `today ${clock}`;
  if (days === 1) return `yesterday ${clock}`;
  const year = begun.getFullYear() === now.getFullYear() ? "" : ` ${begun.getFullYear()}`;
  return `${begun.getDate()} ${MONTHS[begun.getMonth()]}${year}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** @param {Date} date */
function midnight(date) {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}

/** @param {number} n */
function twoDigits(n) {
  return String(n).padStart(2, "0");
}
