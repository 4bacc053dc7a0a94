/** What is the same in two runs where they stand beside each other. */

/** @type {Array<[PanelSelection["aligned"], string, string]>} */
export const ALIGNMENTS = [
  ["step", "step", "Other runs after as many updates."],
  ["time", "time", "Other runs as long after their first row."],
  ["samples", "samples", "Other runs after as many samples: run.batches(loader) counts them."],
  ["epochs", "epochs", "Other runs after as many epochs."],
  ["loss", "loss", "Other runs where their least loss so far was as small."],
];
