// What the panel's JavaScript shares: the state of a view and what stands in it. The messages it is
// made of are in messages.d.ts; what only one file uses is described there.

type Buffers = ArrayBufferView[];

interface Points {
  x: Float32Array;
  y: Float32Array;
}

/** A line as it is drawn; x is relative to the frame's `x0`. */
type DrawnSeries = LineSeries & Points & { average: Points; left?: boolean };
type DecodedLines = Omit<LinesFrame, "series"> & { series: DrawnSeries[] };

interface HeatCells {
  /** Row of each module. */
  index: Map<string, number>;
  mean: Float32Array;
  maximum: Float32Array;
  states: Uint8Array;
}

/** What tells the step at which a cell was measured. */
type MeasuredCells = { carried: Uint8Array; gaps: Uint8Array; offsets: Uint8Array | Uint16Array | Uint32Array };
type DecodedHeat = HeatFrame & HeatCells & MeasuredCells & { ratio?: undefined };
/** The ratio to another run in the form of a heat map. */
type DecodedRatio = Omit<RatioFrame, "type"> &
  HeatCells & { steps: Int32Array; low: number; high: number; log: false; colours: "sign"; ratio: true };
type ShownHeat = DecodedHeat | DecodedRatio;

type VectorRow = VectorFrameRow & { values: Float32Array; last: Float32Array };
type DecodedVectors = Omit<VectorsFrame, "rows"> & { rows: VectorRow[]; steps: Int32Array };

/** A module, or an entry below one, in the tree. */
interface TreeRow {
  path: string;
  /** Class of a module; "call" or "" for an entry. */
  kind: string;
  nParams: number;
  nOwnParams: number;
  entry: boolean;
  name: string;
  above: TreeRow | null;
  depth: number;
  children: TreeRow[];
  fitKind?: number;
}

type PanelModel = Omit<ModelMessage, "modules" | "v" | "type"> & {
  modules: TreeRow[];
  byPath: Map<string, TreeRow>;
};
type Status = Omit<StatusMessage, "v" | "type">;
type PanelSelection = Omit<SelectionMessage, "v" | "type">;

interface ProbeRow {
  module: string;
  quantity: string;
  schedule: string;
  step: number;
  us: number;
  percent: number;
  note: string;
  kind: SilentRow["kind"] | "";
}

interface ProbeIndex {
  attached: Status["attached"];
  tallies: Status["tallies"];
  silent: SilentRow[];
  rows: ProbeRow[];
  byModule: Map<string, ProbeRow[]>;
}

/** What both plots point at. */
interface Cursor {
  step: number;
  row: number | null;
  from: string;
  /** Modules that an alert speaks of. */
  modules?: string[];
  /** Pixel under the pointer. */
  y?: number;
  /** Element of a vector. */
  element?: number;
  /** Plot on whose step axis `mark` is pointed at. */
  plot?: Plot;
  mark?: PlacedMark;
}

/** What the tree cuts its swatches from: the heat map, or vectors, as last painted. */
interface HeatPicture {
  image: HTMLCanvasElement;
  frame: ShownHeat | DecodedVectors;
  map: { pixels: Uint32Array };
  values: Axis | null;
  /** Values of the cells of a heat map. */
  cells?: Float32Array;
  log?: boolean;
  ground?: string;
  /** What it was painted for, of vectors. */
  key?: string;
  /** First row of the image and number of rows. */
  placeOf(path: string): [number, number] | null;
}

type GraphNetwork = ReturnType<typeof import("../../notebook_probe/explorer/js/parts/graph/folding/network.js").networkOf>;

/** A box of the graph: an operator, or a module with all of its operators. */
interface GraphBox {
  key: string;
  path: string | null;
  nodes: number[];
  scope: GraphScope | null;
  isOpen?: boolean;
}

interface GraphScope {
  path: string;
  boxes: GraphBox[];
  edges: Array<[number, number]>;
}

interface Left {
  to: number;
  fork: number | null;
  lines: DecodedLines | null;
  heat: DecodedHeat | null;
}

type Topic = string;

/** The last message to each part; `explorer/parts` writes them. */
interface PartMessages {
  knobs: { knobs: KnobRow[]; hint: RateHint | null; last: LastChange | null };
  rules: { rules: RuleRow[]; trial: RuleTrial | null };
  looks: { looks: LookRow[]; most: number; asked: Array<[string, number]>; missed: Array<[string, number, string]> };
  history: {
    checkpoints: CheckpointRow[];
    branch: number;
    fork: number | null;
    left: LeftLine | null;
    way: WayBackInfo | null;
  };
  left: { rows: AlertRow[]; findings: FindingRow[] };
  left_lines: (LinesFrame & { buffers: Buffers }) | null;
  left_heat: (HeatFrame & { buffers: Buffers }) | null;
  compare: {
    folder: string;
    listed: boolean;
    problem: string;
    n_left_out: number;
    own: RunRow | null;
    runs: RunRow[];
    refused: Record<string, string>;
  };
  beside: (BesideFrame & { buffers: Buffers }) | null;
  ratio: (RatioFrame & { buffers: Buffers }) | null;
  parting: PartingMessage | null;
  shown_look: ShownLook | null;
  graph: { revision: number; why: string };
  shown_graph: ShownGraph | null;
  probes: {
    n_measured: number;
    step_s: number | null;
    budget: number | null;
    presets: PresetEntry[];
    flight: string;
  };
  saved: { place: string; open: string; left_out: string[]; most: number } | null;
  breaks: {
    live: boolean;
    rows: BreakRow[];
    held: { text: string; step: number } | null;
    traceback: string;
    severe: string[];
    rules: string[];
    trial: BreakpointTrial | null;
  };
}

type ShownLook = Omit<ShowLook, "v" | "type"> & { blocks: LookBlock[]; error: string; buffers: Buffers };

interface ShownGraph {
  revision: number;
  how: string;
  why: string;
  error: string;
  /** (name, kind, op, module, shape, dtype) */
  nodes: Array<[string, string, string, string, number[], string]>;
  edges: Array<[number, number]>;
  /** (path, class, parameters, calls) */
  modules: Array<[string, string, number, number]>;
}

/** What one view knows; see js/state.js. */
interface PanelState {
  model: PanelModel;
  status: Status;
  probes: ProbeIndex;
  selection: PanelSelection;
  lines: DecodedLines | null;
  heat: DecodedHeat | null;
  vectors: DecodedVectors | null;
  left: Left | null;
  alerts: PanelAlert[];
  findings: FindingRow[];
  remarks: RemarkRow[];
  both: boolean;
  views: ViewRow[];
  viewMessage: EsmMessage | (DrawnFrame & { buffers: Buffers }) | null;
  parts: PartMessages;
  heatPicture: HeatPicture | null;
  marked: Set<string>;
  folded: Set<string>;
  exported: (Exported & { buffer: DataView }) | null;
  silent: boolean;
  frames: number;
  vectorOptions: { counts: boolean; own: boolean };
  looked: number | null;
  pressed: StepMark | null;
  cursor: Cursor | null;
  pinned: Cursor | null;
  strip: number;
  gutter: number;
  on(topic: Topic, subscriber: () => void): void;
  emit(topic: Topic): void;
}

interface StepMark {
  step: number;
  x: number;
  kind: string;
  text: string;
  left?: boolean;
}

/** A mark as it is painted, with the texts of those it hides. */
type PlacedMark = StepMark & { texts: string[] };

/** An alert; `left` is true on the line that was left for a branch. */
type PanelAlert = AlertRow & { left?: boolean };

/** A frame as it is sent: whole, or what is new since frame `base`. */
type SentFrame = (LinesFrame | HeatFrame | VectorsFrame) & { base?: number; kept?: number[][] };
/** The last frame of a kind, whole. */
interface WholeFrame {
  message: SentFrame;
  buffers: ArrayBufferView[];
}

/** Columns that were saved with a page: a heat map, and the last measured step of each column. */
/** What the panel needs of a widget's model, or of what stands in for one. */
interface Comm {
  send(message: unknown): void;
  on(event: string, receive: (message: any, buffers?: Buffers) => void): void;
  off(event: string, receive: (message: any, buffers?: Buffers) => void): void;
}

type KernelLink = ReturnType<typeof import("../../notebook_probe/explorer/js/link/kernel_link.js").createKernelLink>;
type SelectionControl = ReturnType<typeof import("../../notebook_probe/explorer/js/link/selection.js").createSelection>;
type Dialogs = ReturnType<typeof import("../../notebook_probe/explorer/js/dialogs/dialog.js").createDialogs>;
type Drawer = ReturnType<typeof import("../../notebook_probe/explorer/js/dialogs/drawer.js").createDrawer>;
type Theme = ReturnType<typeof import("../../notebook_probe/explorer/js/plots/theme.js").createTheme>;
type Plot = ReturnType<typeof import("../../notebook_probe/explorer/js/plots/plot.js").createPlot>;
type Axis = ReturnType<typeof import("../../notebook_probe/explorer/js/plots/scale.js").stepScale>;
type Fail = (problem: unknown) => void;

/** What every part of the panel gets. */
interface PanelParts {
  root: HTMLElement;
  state: PanelState;
  theme: Theme;
  link: KernelLink;
  selection: SelectionControl;
  dialogs: Dialogs;
  drawer: Drawer;
  fail: Fail;
  signal: AbortSignal;
}

/** Colours of the page as the canvas needs them. */
type Colours = Record<"ink" | "soft" | "line" | "edge" | "ground" | "brand" | "bad" | "amber" | "font", string>;

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
  foot: number;
}

// What stands in the panel is HTML or SVG: all of it can have the focus, a style and data.

interface ParentNode {
  querySelector(selectors: string): HTMLElement | null;
  querySelectorAll(selectors: string): NodeListOf<HTMLElement>;
}
interface Element extends HTMLOrSVGElement, ElementCSSInlineStyle {
  click(): void;
}

/** A control that can be greyed or hidden. */
type Control = HTMLElement & { disabled: boolean };
