/** Sparser schedules and their cost; only for texts such as every(10). */

const EVERY = /^\s*(?:every\s*\(?\s*(\d+)\s*(?:,\s*\d+\s*)?\)?|(\d+))\s*$/;
const LADDER = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
const SPARSER = 4; // times at least

/**
 * Steps from one due step to the next; null where the text does not say.
 * @param {string} text
 */
export function period(text) {
  const [, called, bare] = EVERY.exec(text) ?? [];
  return Number(called ?? bare) || null;
}

/**
 * The next round schedule that is due so seldom that it is felt; null of any other.
 * @param {string} text
 */
export function sparser(text) {
  const now = period(text);
  const next = now && LADDER.find((one) => one >= SPARSER * now);
  return next ? `every(${next})` : null;
}

/**
 * What is left of a cost on another schedule; null where it cannot be told.
 * @param {string} text
 * @param {Pick<ProbeGroup, "schedule" | "percent">} group
 * @param {boolean} everyStep
 */
export function costOn(text, { schedule, percent }, everyStep) {
  const [before, after] = [period(schedule), period(text)];
  if (!before || !after) return null;
  return everyStep ? percent : (percent * before) / after;
}

/**
 * What an error says before it lists what is allowed.
 * @param {string} text
 */
export function briefly(text) {
  return text.split(/[;:,.]? ?\(?[Aa]llowed(?: are)?:? /)[0];
}
