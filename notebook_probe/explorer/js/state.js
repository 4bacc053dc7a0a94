/** State of one view. Parts listen to a topic and read the fields; nothing else is shared. */

import { ratioFrame } from "./parts/compare/ratio_frame.js";
import { EMPTY_PARTS } from "./parts/empty.js";
import { indexProbes } from "./probes.js";
import { indexModules } from "./tree/modules.js";

/** @type {PanelSelection} */
export const EMPTY_SELECTION = {
  home: "",
  series: [],
  window: null,
  log_heat: null, // automatic: depends on the values
  cells: "max",
  log_y: null,
  y_limits: null,
  outliers: false,
  charts: [],
  log_x: false,
  smooth: 0,
  x_axis: "step",
  rows: [],
  folds: [],
  others: [],
  ratio_to: "", // the values of this run
  aligned: "step",
  apart: [2, 10],
  grouped: false,
  chosen_colors: [],
};

/** @type {Omit<ModelMessage, "v" | "type">} */
const EMPTY_MODEL = {
  name: "",
  location: "",
  live: true,
  modules: [],
  entries: [],
  kinds: [],
  quantities: [],
};

/** @type {Status} */
const EMPTY_STATUS = {
  state: "waiting",
  step: 0,
  end_step: -1,
  epoch: -1,
  seconds_left: null,
  rate: null,
  cost_percent: null,
  budget: "",
  progress: "",
  route: "",
  attached: [],
  tallies: [],
  silent: [],
  costs: {},
  recorded: {},
  logged: [],
  vectors: {},
  problems: [],
  tickets: [],
  can: {},
  record: "",
  device: "",
  nbytes: 0,
  flushed_age_s: null,
  unheard: false,
  dropped_rows: 0,
};

/** @returns {PanelState} */
export function createState() {
  /** @type {Map<Topic, Array<() => void>>} */
  const subscribers = new Map();
  return {
    model: { ...EMPTY_MODEL, ...indexModules(EMPTY_MODEL) },
    status: EMPTY_STATUS,
    /** The attached probes, by module too. */
    probes: indexProbes(EMPTY_STATUS, null),
    selection: EMPTY_SELECTION,
    /** Last frames, decoded; null before the first. */
    lines: null,
    heat: null,
    vectors: null,
    /** The line that was left for a branch, { to, fork, lines, heat }; null without one. */
    left: null,
    /** All steps, { low, high, heat, lines }, as they came last; null before, and of another branch. */
    whole: null,
    /** What the rules have found: { number, rule, step, modules, quantities, view, text, severity }. */
    alerts: [],
    /** Which of them belong together, causes before what came of them: { first, modules, where, sentence, cause }. */
    findings: [],
    /** The newest findings that may be intended: { step, modules, where, sentence }. */
    remarks: [],
    /** Whether those of the line that was left are listed in this view, too. */
    both: false,
    /** The registered views, as the kernel lists them. */
    views: [],
    /** The last message to one of them. */
    viewMessage: null,
    /** The last message to each part, by its name; a topic of this name follows every message. */
    parts: { ...EMPTY_PARTS },
    /** The heat map as last painted, { image, values }: the tree cuts its swatches from it. */
    heatPicture: null,
    /** Paths marked in the tree of this view. */
    marked: new Set(),
    /** Paths folded in the tree of this view; "folded" follows. */
    folded: new Set(),
    /** The last answer to an export. */
    exported: null,
    /** No message for seconds although some are due. */
    silent: false,
    /** What the front end knows of a silent kernel: "dead", "restarted", "busy"; "" for nothing. */
    kernel: "",
    /** Place of the chart that has the whole window; null for none; "enlarged" follows. */
    enlarged: null,
    /** What is pointed at among the lines, { module, quantity }, null for nothing; "emphasis" follows. */
    emphasis: null,
    /** Steps that are pinned in the lines, at most two; "pins" follows. */
    pins: [],
    /** The charts of the lines as last painted, from the top. */
    charts: [],
    /** Frames painted so far. */
    frames: 0,
    /** How this view draws vectors: counts instead of shares, a scale for each module. */
    vectorOptions: { counts: false, own: false },
    /** The step of the look that stands in place of the heat map; null without one. */
    looked: null,
    /** The mark on a step axis that was clicked last; "pressed" follows. */
    pressed: null,
    /** The step whose batch was asked for last, and the button that asks; "batch" follows. */
    batch: null,
    /** Shared by both plots: { step, row, from } or null. */
    cursor: null,
    /** Where the cursor goes back to when nothing is pointed at. */
    pinned: null,
    /** Pixels that the history takes between the rows above the lines and their step axis. */
    strip: 0,
    /** Pixels kept free left of both plots, so that their step axes stand above each other. */
    gutter: 52,
    on(topic, subscriber) {
      subscribers.set(topic, [...(subscribers.get(topic) ?? []), subscriber]);
    },
    emit(topic) {
      for (const subscriber of subscribers.get(topic) ?? []) subscriber();
    },
  };
}

/** @param {Pick<Status, "state">} status */
export function hasEnded({ state }) {
  return state === "finished" || state === "failed";
}

/**
 * The recorded quantities of modules: all but what the loop logs.
 * @param {Pick<Status, "recorded" | "logged">} status
 */
export function measured({ recorded, logged }) {
  return Object.keys(recorded).filter((quantity) => !logged.includes(quantity));
}

/**
 * Whether the lines, or the colours of the heat map, are logarithmic: as chosen, else as the frame is.
 * @param {Pick<PanelState, "selection" | "lines">} state
 */
export function isLogY({ selection, lines }) {
  return selection.log_y ?? lines?.log_y ?? true;
}

/** @param {PanelState} state */
export function isLogHeat(state) {
  return !ratioFrame(state) && (state.selection.log_heat ?? state.heat?.log ?? true);
}

/**
 * The frame that the heat map shows: values of this run, or their ratio to another's.
 * @param {PanelState} state
 */
export function heatFrame(state) {
  return ratioFrame(state) ?? state.heat;
}

/**
 * Units of a quantity, "1" where it has none.
 * @param {Pick<PanelModel, "quantities">} model
 * @param {string} quantity
 */
export function unitsOf(model, quantity) {
  return model.quantities.find((one) => one.name === quantity)?.units || "1";
}

/**
 * What a quantity is like where all is well, null where nothing is said of it.
 * @param {Pick<PanelModel, "quantities">} model
 * @param {string} quantity
 */
export function usualOf(model, quantity) {
  return model.quantities.find((one) => one.name === quantity)?.usual ?? null;
}

/**
 * Recorded, or listed, as a vector or an image: what is not recorded yet is no number either.
 * @param {Pick<PanelState, "model" | "status">} state
 * @param {string} quantity
 */
export function isVector({ model, status }, quantity) {
  const listed = model.quantities.find((one) => one.name === quantity);
  return quantity in status.vectors || (listed ?? { value: "number" }).value !== "number";
}

/**
 * What stands above the lines: the frame of the home quantity, numbers or vectors.
 * @param {PanelState} state
 */
export function homeFrame(state) {
  return showsVectors(state) ? state.vectors : heatFrame(state);
}

/**
 * Whether the home quantity is a vector that the panel draws.
 * @param {Pick<PanelState, "status" | "selection" | "vectors">} state
 */
export function showsVectors({ status, selection, vectors }) {
  return Boolean(status.vectors[selection.home]) || vectors?.quantity === selection.home;
}

/**
 * @param {PanelSelection} selection
 * @param {string} module
 * @param {string} quantity
 */
export function hasSeries(selection, module, quantity) {
  return selection.series.some(([path, name]) => path === module && name === quantity);
}

/**
 * Of what a panel without a kernel has no numbers; "" where there is a kernel.
 * @param {Pick<PanelState, "parts">} state
 * @param {string} name
 */
export function whyNotSaved({ parts }, name) {
  return parts.saved ? `${name} was not saved with the ${parts.saved.place}` : "";
}
