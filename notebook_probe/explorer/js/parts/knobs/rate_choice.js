/** Chosen learning rate: one factor for all groups, or a value for each. */

const NEARLY = 1e-9;

/**
 * What is shown until the kernel has told of a knob.
 * @type {KnobRow}
 */
export const NO_KNOB = { name: "", value: null, low: null, high: null, log: false, groups: [], of: "", details: [] };

/** Kept apart from what shows it: `told(knob)` is what the kernel says, the rest what is chosen. */
export function createRateChoice() {
  let knob = NO_KNOB;
  let factor = 1; // of what each group has now
  /** @type {number | null} */
  let exact = null; // what was typed, while all groups are alike
  /** @type {Map<number, number | null>} */
  let own = new Map(); // group -> its own value, once they go apart
  let together = true;

  const alike = () => knob.value !== null;
  /** @type {(group: number) => number | null} */
  const chosen = (group) => {
    const now = knob.groups[group];
    if (!together) return own.get(group) ?? now;
    if (alike()) return exact ?? now;
    return now === null ? null : now * factor;
  };
  /** @type {(value: number | null, now: number | null) => boolean} */
  const isOther = (value, now) =>
    value !== null && now !== null && Math.abs(value - now) > NEARLY * Math.abs(now);

  return {
    /** @param {KnobRow} row */
    told(row) {
      knob = row;
      factor = alike() && exact !== null && knob.value ? exact / knob.value : factor;
    },
    alike,
    chosen,
    get factor() {
      return factor;
    },
    get together() {
      return together;
    },
    /** The one value of all groups; null while they are unlike. */
    get value() {
      if (!alike() || !together) return null;
      return exact ?? knob.value;
    },
    /** @param {number} value */
    setValue(value) {
      exact = value;
      factor = knob.value ? value / knob.value : 1;
    },
    /** @param {number} times */
    setFactor(times) {
      if (knob.value !== null) this.setValue(knob.value * times);
      else factor = times;
    },
    /** @param {boolean} wanted */
    setTogether(wanted) {
      if (!wanted) own = new Map(knob.groups.map((_, group) => [group, chosen(group)]));
      together = wanted;
    },
    /**
     * @param {number} group
     * @param {number} value
     */
    setGroup(group, value) {
      if (together) this.setTogether(false);
      own.set(group, value);
    },
    /** Nothing is chosen any more: what is now is what is shown. */
    reset() {
      [factor, exact, own, together] = [1, null, new Map(), true];
    },
    /**
     * Ask for what was chosen; returns the ids of the requests.
     * @param {Pick<KernelLink, "ask">} link
     * @param {boolean} hold
     * @returns {string[]}
     */
    ask(link, hold) {
      const { name } = knob;
      const { value } = this;
      if (value !== null) return [link.ask("set", { name, value, group: null, hold })];
      if (together) return [link.ask("scale", { name, factor, hold })];
      return knob.groups.flatMap((now, group) => {
        const value = own.get(group) ?? null;
        return value !== null && isOther(value, now) ? link.ask("set", { name, value, group, hold }) : [];
      });
    },
    get isChanged() {
      if (!together) return knob.groups.some((now, group) => isOther(own.get(group) ?? now, now));
      return alike() ? isOther(this.value, knob.value) : isOther(factor, 1);
    },
  };
}
