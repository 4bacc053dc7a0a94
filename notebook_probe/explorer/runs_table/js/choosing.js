/** The open run below the table, and the runs that are overlaid on it. */

const MOST = 4; // dashes that can be told apart

/**
 * `told()` follows when another is.
 * @param {{ model: ChosenRuns, told: () => void }} parts
 */
export function createChoosing({ model, told }) {
  const choosing = {
    problem: "",
    /**
     * Open a run; the one that was open goes.
     * @param {string} run
     */
    open(run) {
      choose(run, model.get("others").filter((one) => one !== run));
    },
    /**
     * Draw a run beside the open one, or take it away; without an open one, open it.
     * @param {string} run
     */
    tick(run) {
      const [chosen, others] = [model.get("chosen"), model.get("others")];
      if (!chosen) return choose(run, []);
      if (run === chosen) return choose(others[0] ?? "", others.slice(1));
      if (others.includes(run)) return choose(chosen, others.filter((one) => one !== run));
      if (others.length < MOST) return choose(chosen, [...others, run]);
      return refuse(`At most ${MOST} runs with the open one: remove one first`);
    },
    /** @param {string} run */
    stateOf(run) {
      return { isOpen: run === model.get("chosen"), isTicked: model.get("others").includes(run) };
    },
    /** @param {string} hint */
    words(hint) {
      const [chosen, others] = [model.get("chosen"), model.get("others")];
      if (!chosen) return hint;
      return others.length ? `${chosen}, and ${others.length} others` : chosen;
    },
  };

  /**
   * @param {string} run
   * @param {string[]} others
   */
  function choose(run, others) {
    choosing.problem = "";
    model.set("others", others);
    model.set("chosen", run);
    model.save_changes();
    told();
  }

  /** @param {string} why */
  function refuse(why) {
    choosing.problem = why;
    told();
  }

  return choosing;
}
