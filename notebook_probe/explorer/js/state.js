/** What one view knows. Parts listen to a topic and read the fields; nothing else is shared. */

import { indexProbes } from "./probes.js";
import { indexModules } from "./tree/modules.js";

export const EMPTY_SELECTION = {
  home: "",
  series: [],
  window: null,
  log_heat: true,
  cells: "max",
  log_y: true,
  log_x: false,
  smooth: 0,
  x_axis: "step",
};

const EMPTY_MODEL = {
  name: "",
  location: "",
  live: true,
  modules: [],
  entries: [],
  kinds: [],
  quantities: [],
};

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
  vectors: [],
  problems: [],
  tickets: [],
  can: {},
  record: "",
  nbytes: 0,
  flushed_age_s: null,
  dropped_rows: 0,
};

export function createState() {
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
    /** What the rules have found: { rule, step, modules, quantities, view, text }. */
    alerts: [],
    /** The registered views, as the kernel lists them. */
    views: [],
    /** The last message to one of them. */
    viewMessage: null,
    /** The heat map as last painted, { image, values }: the tree cuts its swatches from it. */
    heatPicture: null,
    /** Paths marked in the tree of this view. */
    marked: new Set(),
    /** The last answer to an export. */
    exported: null,
    /** No message for seconds although some are due. */
    silent: false,
    /** Frames painted so far. */
    frames: 0,
    /** Shared by both plots: { step, row, from } or null. */
    cursor: null,
    /** Pixels kept free left of both plots, so that their step axes stand above each other. */
    gutter: 52,
    on(topic, subscriber) {
      if (!subscribers.has(topic)) subscribers.set(topic, []);
      subscribers.get(topic).push(subscriber);
    },
    emit(topic) {
      for (const subscriber of subscribers.get(topic) ?? []) subscriber();
    },
  };
}

/** Units of a quantity, "1" where it has none. */
export function unitsOf(model, quantity) {
  return model.quantities.find((one) => one.name === quantity)?.units || "1";
}

/** Recorded, or listed, as a vector: that nothing is recorded of it yet makes it no number. */
export function isVector({ model, status }, quantity) {
  const listed = model.quantities.find((one) => one.name === quantity);
  return status.vectors.includes(quantity) || Boolean(listed?.is_vector);
}

export function hasSeries(selection, module, quantity) {
  return selection.series.some(([path, name]) => path === module && name === quantity);
}
