/** The messages to the parts of the panel, before the first of them. */

/**
 * What each part of the panel knows, until the kernel says more.
 * @type {PartMessages}
 */
export const EMPTY_PARTS = {
  knobs: { knobs: [], hint: null, last: null },
  rules: { rules: [], trial: null },
  looks: { looks: [], most: 0, asked: [], missed: [] },
  history: { checkpoints: [], branch: 1, fork: null, left: null, way: null },
  left: { rows: [], findings: [] },
  left_lines: null,
  left_heat: null,
  compare: {
    references: [],
    are_references: false,
    folder: "",
    listed: false,
    problem: "",
    n_left_out: 0,
    own: null,
    runs: [],
    refused: {},
  },
  beside: null,
  ratio: null,
  parting: null,
  shown_look: null,
  graph: { revision: 0, why: "" },
  shown_graph: null,
  probes: { n_measured: 0, step_s: null, budget: null, presets: [], flight: "" },
  saved_views: { rows: [], file: "", problem: "" },
  saved: null, // the notice of a panel without a kernel
  hints: { open: [] },
  examination: { live: false, step: -1, title: "", rows: [] },
  output: { live: false, kept: false, problem: "", lines: [] },
  messages: { live: false, rows: [], answered: "", problem: "" },
  breaks: { live: false, rows: [], paused: null, traceback: "", severe: [], rules: [], trial: null },
};
