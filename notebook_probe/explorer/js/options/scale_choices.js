/** Choices of a value axis: `[value, text, sentence]` each. */

/** @type {Array<[boolean | null, string, string]>} */
export const VALUES = [
  [null, "automatic", "Linear for shares and values of both signs, else logarithmic."],
  [true, "log", "Values of 0 and below are in a separate lane."],
  [false, "linear", ""],
];

/** @type {Array<[boolean, string, string]>} */
export const OUTLIERS = [
  [false, "left out", "Single values far beyond all others are outside; their number is written above the lines."],
  [true, "shown", "The axis has room for every value."],
];
