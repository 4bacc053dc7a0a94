/** Axes on which two runs can be aligned. */

/** @type {Array<[PanelSelection["aligned"], string, string]>} */
export const ALIGNMENTS = [
  ["step", "step", "Other runs, aligned by update."],
  ["time", "time", "Other runs, aligned by the time since their first row."],
  ["samples", "samples", "Other runs, aligned by sample: run.batches(loader) counts them."],
  ["epochs", "epochs", "Other runs, aligned by epoch."],
  ["loss", "loss", "Other runs, aligned by the lowest loss so far."],
];
