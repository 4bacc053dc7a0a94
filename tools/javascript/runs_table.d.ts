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
  /** Of the runs that have any. */
  marks: RunMarks[];
}

/** What a user has noted of a run. */
interface RunMarks {
  at: number;
  name: string;
  tags: string[];
  note: string;
}

/** Rows that are others now, and those that have come, behind the others by their places. */
interface RowsMessage {
  at: number[];
  runs: string[];
  labels: string[];
  columns: TableColumn[];
  names: string[];
  shown: string[];
  marks: RunMarks[];
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
  get(name: "can_mark"): boolean;
  set(name: string, value: string | string[] | KeptTable): void;
  save_changes(): void;
}

/** How a view was arranged last; empty at first. */
interface KeptTable {
  columns?: string[] | null;
  sorted?: { name: string; down: boolean };
  filter?: string;
  picture?: PictureChoice;
}

/** Runs of these values of a column; of categories those with one of the texts. */
interface ColumnRange {
  low: number;
  high: number;
  texts: string[] | null;
}

/** A column as an axis of a picture; shares are 0 at its low end, 1 at its high one. */
interface RunAxis {
  name: string;
  isLog: boolean;
  ticks: Array<{ at: number; label: string }>;
  at(key: ColumnKey, text: string): number;
  rangeOf(from: number, to: number): ColumnRange;
  sharesOf(range: ColumnRange): number[];
}

/** Where runs are in a picture of them, in pixels. */
interface RunPlaces {
  kind: "parallel" | "scatter";
  axes: RunAxis[];
  box: [number, number, number, number];
  /** Of the parallel axes. */
  xs: number[];
  /** Axis, then row; NaN without a value. */
  shares: Float64Array[];
  yOf(share: number): number;
  xOf?: (share: number) => number;
  shareAt(axis: number, pixel: number): number;
  /** The row of the run next to a place, -1 if none is near. */
  nearest(x: number, y: number, among: number[]): number;
}

interface RunPicture {
  places: RunPlaces;
  size: { width: number; height: number };
  rows: TableRows;
  ranges: ReadonlyMap<string, ColumnRange>;
  /** Row -> share of its color; NaN without a value. */
  coloured: Float64Array;
  /** Rows that are pointed at or open. */
  brought: number[];
  colours: Colours;
}

/** The picture above the table and its columns; empty for what is usual. */
interface PictureChoice {
  kind: "" | "parallel" | "scatter" | "groups";
  x: string;
  y: string;
  colour: string;
  by: string;
}
