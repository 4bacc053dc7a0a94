/** What the learning rate is about to become: one factor for all groups, or each by itself. */

const NEARLY = 1e-9;

/** Kept apart from what shows it: `told(knob)` is what the kernel says, the rest what is chosen. */
export function createRateChoice() {
  let knob = null;
  let factor = 1; // of what each group has now
  let exact = null; // what was typed, while all groups are alike
  let own = new Map(); // group -> its own value, once they go apart
  let together = true;

  const alike = () => knob.value !== null;
  const chosen = (group) => {
    const now = knob.groups[group];
    if (!together) return own.get(group) ?? now;
    if (alike()) return exact ?? now;
    return now === null ? null : now * factor;
  };
  const isOther = (value, now) =>
    value !== null && now !== null && Math.abs(value - now) > NEARLY * Math.abs(now);

  return {
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
    setValue(value) {
      exact = value;
      factor = knob.value ? value / knob.value : 1;
    },
    setFactor(times) {
      if (alike()) this.setValue(knob.value * times);
      else factor = times;
    },
    setTogether(wanted) {
      if (!wanted) own = new Map(knob.groups.map((_, group) => [group, chosen(group)]));
      together = wanted;
    },
    setGroup(group, value) {
      if (together) this.setTogether(false);
      own.set(group, value);
    },
    /** Nothing is chosen any more: what is now is what is shown. */
    reset() {
      [factor, exact, own, together] = [1, null, new Map(), true];
    },
    /** What to ask for, as clicks without their ids. */
    clicks(hold) {
      const { name } = knob;
      if (together && alike()) return [["set", { name, value: this.value, group: null, hold }]];
      if (together) return [["scale", { name, factor, hold }]];
      return knob.groups
        .map((now, group) => [group, own.get(group), now])
        .filter(([, value, now]) => isOther(value, now))
        .map(([group, value]) => ["set", { name, value, group, hold }]);
    },
    get isChanged() {
      if (!together) return knob.groups.some((now, group) => isOther(own.get(group) ?? now, now));
      return alike() ? isOther(this.value, knob.value) : isOther(factor, 1);
    },
  };
}
