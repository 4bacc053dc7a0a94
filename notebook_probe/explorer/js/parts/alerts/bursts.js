/** Alerts by step, those that come soon after one another together. */

import { grouped } from "../../format.js";

const APART = 64; // steps of quiet that end a burst

/** Lists of alerts, each within 64 steps of the one before. */
export function burstsOf(alerts) {
  const bursts = [];
  for (const alert of [...alerts].sort((one, other) => one.step - other.step)) {
    const last = bursts.at(-1);
    if (last && alert.step - last.at(-1).step <= APART) last.push(alert);
    else bursts.push([alert]);
  }
  return bursts;
}

/** ["Steps 290–400", "one burst; the first sign stands first"] */
export function burstWords(burst) {
  const [first, last] = [burst[0].step, burst.at(-1).step];
  const steps = first === last ? `Step ${grouped(first)}` : `Steps ${grouped(first)}–${grouped(last)}`;
  return [steps, burst.length > 1 ? "one burst; the first sign stands first" : ""];
}
