// What the panel's JavaScript shares: the state of a view and what stands in it. The messages it is
// made of are in messages.d.ts; what only one file uses is described there.

type Buffers = Array<ArrayBufferView<ArrayBuffer>>;

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
  /** Its kind of place, as the kernel counts them; -1 until it is told. */
  fitKind: number;
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

/** The probes of one quantity and schedule; see js/parts/probes/groups.js. */
interface ProbeGroup {
  quantity: string;
  schedule: string;
  rows: ProbeRow[];
  percent: number;
  /** Step of the newest value. */
  step: number;
  /** Why none of them has a value. */
  note: string;
  where: string;
  /** Steps from one due step to the next; null where the schedule does not say. */
  period: number | null;
  everyStep: boolean;
}

/** A sparser schedule for a group, and the per cent that it would take then. */
type Sparser = { group: ProbeGroup; instead: string; left: number };
/** Of a group that can be no sparser `instead` is null. */
type Offer = Sparser | { group: ProbeGroup; instead: null; left: null };

interface ProbeIndex {
  attached: Status["attached"];
  tallies: Status["tallies"];
  silent: SilentRow[];
  rows: ProbeRow[];
  byModule: Map<string, ProbeRow[]>;
}

/** What is pointed at among the lines: a series, or all lines of a module. */
type Emphasis = { module: string; quantity: string | null };

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

/** All steps of the run, as they were drawn last. */
interface Whole {
  low: number;
  high: number;
  heat: DecodedHeat | null;
  lines: DecodedLines | null;
}

interface Left {
  to: number;
  fork: number | null;
  lines: DecodedLines | null;
  heat: DecodedHeat | null;
}

/** Path of a module -> how many alerts it has. */
type BadgeCounts = Map<string, { n: number; severe: number }>;
type Badges = { own: BadgeCounts; inside: BadgeCounts };
/** Path of a module -> at what it pauses, in words. */
type Flags = { own: Map<string, string[]>; inside: Map<string, string[]> };

/** A line of a dialog that chooses a value of a field. */
type ChoiceOf<Of> = <Field extends keyof Of>(
  label: string,
  role: string,
  options: Array<[Of[Field], string, string]>,
  field: Field,
) => { el: HTMLElement; show(value: Of[Field], extra?: string, refused?: Readonly<Record<string, string>>): void };

/** An entry of a list that opens under a button. */
interface ListItem {
  text: string;
  note?: string;
  detail?: string;
  /** Color and dashes of its line, as a background. */
  stroke?: string;
  on?: boolean;
  /** What is typed when this item is chosen, instead of `act`. */
  completes?: string;
  /** Names without "data-" -> values. */
  data: Record<string, string>;
  act(): void;
}

type Topic = string;

/** What takes a quantity or a preset that was picked; the other one is "". */
type TakePicked = (picked: { quantity: string; preset: string }) => void;

/** A run in the list of runs: one of the folder, or this one, whose `begun` is in words. */
type ListedRun = Omit<RunRow, "begun_ms" | "finished"> & { begun_ms?: number; begun?: string };

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
    references: string[];
    are_references: boolean;
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
  saved: SavedMessage | null;
  saved_views: { rows: Array<{ name: string; shows: Partial<PanelSelection> }>; file: string; problem: string };
  examination: { live: boolean; step: number; title: string; rows: Array<[string, string, string, string]> };
  hints: { open: Array<HintClosed["name"]> };
  output: { live: boolean; kept: boolean; problem: string; lines: Array<[number, string]> };
  messages: { live: boolean; rows: MessagesRow[]; answered: string; problem: string };
  breaks: {
    live: boolean;
    rows: BreakRow[];
    paused: { text: string; step: number } | null;
    traceback: string;
    severe: string[];
    rules: string[];
    trial: BreakpointTrial | null;
  };
}

type ShownLook = Omit<ShowLook, "v" | "type"> & { blocks: ShownBlock[]; error: string; buffers: Buffers };
type ShownBlock = Omit<LookBlock, "facts" | "other_facts"> & { facts: TensorFacts; other_facts?: TensorFacts };

/** Which look is shown, beside which other one (-1 for none). */
type WantedLook = Pick<ShowLook, "module" | "step" | "other" | "sample">;

/** Colors of the maps of a block: what the ends mean, and those between them. */
type MapScale = { low: number; high: number; pixels: Uint32Array };

/** A map of a block, painted. */
type LookMap = { place: number; values: Float32Array; image: OffscreenCanvas };

type BlockData = { block: ShownBlock; maps: LookMap[]; scale: MapScale };

/** What is true of a whole tensor. */
interface TensorFacts {
  shape: number[];
  dtype: string;
  device: string;
  minimum: number | null;
  mean: number | null;
  maximum: number | null;
  std: number | null;
  zeros: number;
  nonfinite: number;
  /** Every so many along a dimension are kept, and along which. */
  every: number;
  along: string;
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
  whole: Whole | null;
  alerts: PanelAlert[];
  findings: FindingRow[];
  remarks: RemarkRow[];
  both: boolean;
  views: ViewRow[];
  viewMessage: EsmMessage | (DrawnFrame & { buffers: Buffers }) | null;
  parts: PartMessages;
  heatPicture: ShownPicture | null;
  charts: LineChart[];
  pins: number[];
  enlarged: number | null;
  emphasis: Emphasis | null;
  marked: Set<string>;
  folded: Set<string>;
  exported: (Exported & { buffer: Buffers[number] }) | null;
  silent: boolean;
  kernel: string;
  frames: number;
  vectorOptions: { counts: boolean; own: boolean };
  looked: number | null;
  pressed: Pick<PlacedMark, "step" | "kind"> | null;
  batch: { step: number; anchor: HTMLElement } | null;
  cursor: Cursor | null;
  pinned: Cursor | null;
  strip: number;
  gutter: number;
  on(topic: Topic, subscriber: () => void): void;
  emit(topic: Topic): void;
}

/** An alert; `left` is true on the line that was left for a branch. */
type PanelAlert = AlertRow & { left?: boolean };

/** A finding with its first alert; a cause has below it what came of it. */
interface ListedFinding extends PanelAlert {
  key: string;
  where: string;
  sentence: string;
  below: ListedFinding[];
}

/** A finding as it is listed in the drawer. */
interface AlertLine {
  el: HTMLElement;
  fold: ReturnType<typeof import("../../notebook_probe/explorer/js/parts/alerts/fold.js").createFold>;
  alert: ListedFinding | null;
  /** The line that it stands below. */
  cause: AlertLine | null;
  describe(alert: ListedFinding, cause: AlertLine | null): void;
  toggle(): void;
  show(): void;
}

/** A frame as it is sent: whole, or what is new since frame `base`. */
type SentFrame<Frame> = Frame & { base?: number; kept?: number[][] };
/** The last frame of a kind, whole. */
interface WholeFrame<Frame> {
  message: Frame;
  buffers: Buffers;
}

/** What the panel needs of a widget's model, or of what stands in for one. */
interface Comm {
  send(message: object): void;
  on(event: string, receive: (message: any, buffers?: Buffers) => void): void;
  off(event: string, receive: (message: any, buffers?: Buffers) => void): void;
  widget_manager?: Pick<WidgetManager, "kernel">;
}

type MessageType = AnyMessage["type"];
type MessageOf<Type extends MessageType> = Extract<AnyMessage, { type: Type }>;
/** What a message says, but for what all of them have. */
type FieldsOf<Type extends MessageType> = Omit<MessageOf<Type>, "v" | "type">;
/** A request that gets a ticket. */
type ClickType = Exclude<Extract<AnyMessage, { id: string }>["type"], "ticket">;
type ClickOf<Type extends ClickType> = Omit<MessageOf<Type>, "v" | "type" | "id">;

type KernelLink = ReturnType<typeof import("../../notebook_probe/explorer/js/link/kernel_link.js").createKernelLink>;
type SelectionControl = ReturnType<typeof import("../../notebook_probe/explorer/js/link/selection.js").createSelection>;
type Dock = ReturnType<typeof import("../../notebook_probe/explorer/js/link/dock.js").createDock>;
type RateChoice = ReturnType<
  typeof import("../../notebook_probe/explorer/js/parts/knobs/rate_choice.js").createRateChoice
>;
type Dialogs = ReturnType<typeof import("../../notebook_probe/explorer/js/dialogs/dialog.js").createDialogs>;
type Drawer = ReturnType<typeof import("../../notebook_probe/explorer/js/dialogs/drawer.js").createDrawer>;
type Theme = ReturnType<typeof import("../../notebook_probe/explorer/js/plots/theme.js").createTheme>;
type Plot = ReturnType<typeof import("../../notebook_probe/explorer/js/plots/plot.js").createPlot>;
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

/** Colors of the page as the canvas needs them. */
type Colours = Record<"ink" | "soft" | "line" | "edge" | "ground" | "brand" | "bad" | "amber" | "font", string>;

// What stands in the panel is HTML or SVG: all of it can have the focus, a style and data.

interface ParentNode {
  querySelector<Tag extends keyof HTMLElementTagNameMap>(selectors: Tag): HTMLElementTagNameMap[Tag] | null;
  querySelectorAll<Tag extends keyof HTMLElementTagNameMap>(selectors: Tag): NodeListOf<HTMLElementTagNameMap[Tag]>;
  querySelector(selectors: string): HTMLElement | null;
  querySelectorAll(selectors: string): NodeListOf<HTMLElement>;
}
interface UIEvent {
  readonly target: HTMLElement;
}
interface Element extends HTMLOrSVGElement, ElementCSSInlineStyle {
  click(): void;
}

/** Adds a listener that ends with the view. */
type Listen = <Type extends keyof HTMLElementEventMap>(
  node: HTMLElement,
  type: Type,
  run: (event: HTMLElementEventMap[Type]) => unknown,
  options?: AddEventListenerOptions,
) => void;

/** A control that can be greyed or hidden. */
type Control = HTMLElement & { disabled: boolean };
