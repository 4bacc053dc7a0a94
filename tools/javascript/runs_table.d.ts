// The table of runs: what it is sent, and what one view of it shows.

/** A number, a text, false for NaN, null for what is missing. */
type ColumnKey = number | string | false | null;

interface TableColumn {
  name: string;
  numeric: boolean;
  /** What the rows are sorted by, and what they show. */
  keys: ColumnKey[];
  texts: string[];
}

interface RunsTable {
  runs: string[];
  labels: string[];
  /** Of all columns there are; those that are shown. */
  names: string[];
  shown: string[];
  columns: TableColumn[];
}

/** Rows that are others now, and those that have come, behind the others by their places. */
interface RowsMessage {
  at: number[];
  runs: string[];
  labels: string[];
  columns: TableColumn[];
  names: string[];
  shown: string[];
}

/** What the kernel says of the text in the filter box. */
interface FilteredMessage {
  view: string;
  text: string;
  kind: "condition" | "words" | "problem";
  rows: number[];
  problem: string;
}

type TableRows = ReturnType<typeof import("../../notebook_probe/explorer/runs_table/js/rows_state.js").createRows>;
type RunsBody = ReturnType<typeof import("../../notebook_probe/explorer/runs_table/js/body.js").createBody>;

/** The traits of the widget that say which runs are shown. */
interface ChosenRuns {
  get(name: "chosen" | "said"): string;
  get(name: "others"): string[];
  set(name: string, value: string | string[]): void;
  save_changes(): void;
}
