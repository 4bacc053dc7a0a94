// Written by `python -m tools.message_types`; change the typed dictionaries instead.

interface Ack {
  v: number;
  type: "ack";
  view: string;
  painted: Record<string, number>;
}

interface AlertRow {
  number: number;
  rule: string;
  step: number;
  modules: Array<string>;
  quantities: Array<string>;
  view: string;
  text: string;
  severity: "remark" | "warning" | "severe";
}

interface AlertsMessage {
  v: number;
  type: "alerts";
  whole: boolean;
  rows: Array<AlertRow>;
  findings: Array<FindingRow>;
  remarks: Array<RemarkRow>;
}

interface ArrayPlace {
  path: Array<string | number>;
  dtype: string;
  shape: Array<number>;
}

interface AttachClick {
  v: number;
  type: "attach";
  id: string;
  where: Array<string>;
  quantity: string;
  schedule: string;
}

interface BesideFrame {
  v: number;
  type: string;
  aligned: string;
  x0: number;
  series: Array<BesideLine>;
}

interface BesideLine {
  run: string;
  module: string;
  quantity: string;
  n: number;
  offset: number;
  n_runs: number;
  banded: boolean;
}

interface BreakClick {
  v: number;
  type: "break";
  id: string;
  kind: "step" | "alert" | "series" | "nan" | "error";
  module: string;
  quantity: string;
  sign: ">" | "<" | ">=" | "<=" | "crosses";
  number: number;
  for_rows: number;
  rules: Array<string>;
  before: "step" | "update";
}

interface BreakRow {
  id: number;
  kind: string;
  text: string;
  number: number | null;
  armed: boolean;
  pauses: boolean;
  last_step: number;
  module: string;
  quantity: string;
  sign: string;
  rules: Array<string>;
  note: string;
}

interface BreakpointTrial {
  module: string;
  quantity: string;
  now: number | null;
  usual: number | null;
  steps: Array<number>;
  n_steps: number | null;
}

interface BudgetClick {
  v: number;
  type: "budget";
  id: string;
  percent: number | null;
}

interface BuildGraphClick {
  v: number;
  type: "build_graph";
  id: string;
}

interface ChartMessage {
  series: Array<[string, string]>;
  log_y: boolean | null;
  y_limits: [number, number] | null;
  outliers: boolean;
  smooth: number;
  height: number;
}

interface CheckpointRow {
  step: number;
  nbytes: number;
  path: string;
  loss: number | null;
  time_ms: number;
  gone: boolean;
}

interface CodeAxis {
  setup: string;
  x: string;
  log: string;
}

interface CompareWithClick {
  v: number;
  type: "compare_with";
  id: string;
  runs: Array<string>;
}

interface CompiledClick {
  v: number;
  type: "compiled";
  id: string;
  steps: "eager" | "skip";
}

interface ControlClick {
  v: number;
  type: "control";
  id: string;
  action: "pause" | "resume" | "step" | "stop";
}

interface DetachClick {
  v: number;
  type: "detach";
  id: string;
  where: Array<string>;
  quantity: string;
}

interface DrawnFrame {
  v: number;
  type: "drawn";
  seq: number;
  view: string;
  form: "image" | "data" | "nothing";
  width?: number;
  height?: number;
  data?: unknown;
  arrays?: Array<ArrayPlace>;
}

interface EditBreakClick {
  v: number;
  type: "edit_break";
  id: string;
  which: number;
  armed: boolean | null;
  number: number | null;
}

interface EditRuleClick {
  v: number;
  type: "edit_rule";
  id: string;
  rule: string;
  numbers: Record<string, number>;
}

interface EditView {
  v: number;
  type: "edit_view";
  act: "save" | "show" | "remove";
  name: string;
}

interface EsmMessage {
  v: number;
  type: "esm";
  view: string;
  text: string;
}

interface EvaluateClick {
  v: number;
  type: "evaluate";
  id: string;
  step: number;
  preset: string;
}

interface ExamineClick {
  v: number;
  type: "examine";
  id: string;
}

interface ExportClick {
  v: number;
  type: "export";
  kind: "png" | "svg" | "csv" | "netcdf" | "code";
}

interface Exported {
  v: number;
  type: "exported";
  filename: string;
  mime: string;
  text?: string;
  error?: string;
  note?: string;
}

interface FindingRow {
  first: number;
  modules: Array<string>;
  where: string;
  sentence: string;
  cause: number | null;
  after: string;
}

interface FoldClick {
  v: number;
  type: "fold";
  name: string;
  folded: boolean;
}

interface GroupRow {
  text: string;
  scheduled: number | null;
  held: boolean;
}

interface GroupsMessage {
  by: string;
  scalar: string;
  n_read: number;
  n_runs: number;
  groups: Array<RunGroupLine>;
  problem: string;
}

interface HeatFrame {
  v: number;
  type: "heat";
  seq: number;
  layout: Array<Array<[number, number]>>;
  quantity: string;
  rows: Array<string>;
  columns: number;
  first_step: number;
  last_step: number;
  end_step: number;
  before: Array<number>;
  low: number | null;
  high: number | null;
  lowest: number | null;
  highest: number | null;
  log: boolean;
  colours: "value" | "share" | "sign";
}

interface Hello {
  v: number;
  type: "hello";
  view: string;
}

interface HintClosed {
  v: number;
  type: "close_hint";
  name: "layer" | "attach" | "alerts";
}

interface KnobRow {
  name: string;
  value: number | null;
  low: number | null;
  high: number | null;
  log: boolean;
  groups: Array<number | null>;
  of: string;
  details: Array<GroupRow>;
}

interface LastChange {
  step: number;
  text: string;
}

interface LeftLine {
  to: number;
  checkpoints: Array<CheckpointRow>;
  n_alerts: number;
}

interface LineSeries {
  module: string;
  quantity: string;
  chart: number;
  log_y: boolean;
  colour: number;
  n: number;
  n_average: number;
  offset: number;
  n_rows: number;
  first_step: number;
  last_step: number;
  last_value: number | null;
  n_nonfinite: number;
  weight: number;
  marks: Array<number>;
  problem?: string;
}

interface LinesFrame {
  v: number;
  type: "lines";
  seq: number;
  layout: Array<Array<[number, number]>>;
  x0: number;
  x_axis: "step" | "time" | "epoch";
  knots: Array<[number, number]>;
  refused: Record<string, string>;
  smooth: number;
  log_y: boolean;
  averaged: number;
  series: Array<LineSeries>;
  events: Array<[number, string, string]>;
}

interface ListRuns {
  v: number;
  type: "list_runs";
}

interface LookBlock {
  tensor: string;
  places: Array<number>;
  height: number;
  width: number;
  offset: number;
  other?: number;
  n_samples: number;
  note: string;
  facts: Record<string, unknown>;
  other_facts?: Record<string, unknown>;
}

interface LookClick {
  v: number;
  type: "look";
  id: string;
  module: string;
}

interface LookRow {
  module: string;
  step: number;
  nbytes: number;
  why: string;
  is_batch: boolean;
}

interface LookedAt {
  scalar: string;
  line: Array<number | null>;
  last: number | null;
  alerts: Array<string>;
  n_alerts: number;
  severe: boolean;
  problem: string;
}

interface MessagesEnd {
  v: number;
  type: "notify_end";
  which: number;
}

interface MessagesRow {
  id: number;
  kind: string;
  on: Array<string>;
  n_sent: number;
  problem: string;
}

interface MessagesStart {
  v: number;
  type: "notify";
  id: string;
  address: string;
  on: Array<string>;
}

interface ModelMessage {
  v: number;
  type: "model";
  name: string;
  location: string;
  live: boolean;
  modules: Array<[string, string, number, number, number]>;
  entries: Array<[string, string]>;
  kinds: Array<number>;
  quantities: Array<QuantityRow>;
}

interface Moved {
  v: number;
  type: "moved";
  window: [number, number] | null;
}

interface OutputKeep {
  v: number;
  type: "keep_output";
}

interface OutputShow {
  v: number;
  type: "show_output";
  on: boolean;
}

interface PartedRow {
  module: string;
  step: number;
  there: string;
  now: string;
}

interface PartingMessage {
  v: number;
  type: string;
  quantity: string;
  to: string;
  text: string;
  bound: string;
  found: Array<PartedRow>;
  lately: Array<string>;
  within: Array<string>;
  missing: Array<string>;
}

interface Ping {
  v: number;
  type: "ping";
  token: string;
}

interface Pointed {
  v: number;
  type: "pointed";
  step: number;
}

interface PresetClick {
  v: number;
  type: "preset";
  id: string;
  name: string;
}

interface PresetEntry {
  name: string;
  about: string;
  percent: number | null;
}

interface ProblemRow {
  module: string;
  quantity: string;
  text: string;
  count: number;
  disabled: boolean;
}

interface QuantityRow {
  name: string;
  summary: string;
  needs: Array<string>;
  units: string;
  value: "number" | "vector" | "image";
  question: string;
  topic: string;
  formula: string;
  aliases: Array<string>;
  every_step: boolean;
  usual: number | null;
  misfits: Array<string>;
}

interface RateHint {
  ratio: number;
  common: number;
  factor: number;
}

interface RatioFrame {
  v: number;
  type: string;
  quantity: string;
  to: string;
  rows: Array<string>;
  columns: number;
  first_step: number;
  last_step: number;
  end_step: number;
  limit: number;
  signed: boolean;
  lowest: number | null;
  highest: number | null;
}

interface ReleaseClick {
  v: number;
  type: "release";
  id: string;
  name: string;
}

interface RemarkRow {
  step: number;
  modules: Array<string>;
  where: string;
  sentence: string;
}

interface RescheduleClick {
  v: number;
  type: "reschedule";
  id: string;
  where: Array<string>;
  quantity: string;
  schedule: string;
}

interface RewindClick {
  v: number;
  type: "rewind";
  id: string;
  step: number;
  preset: string;
  schedule: string;
  until: number | null;
  rate: number | null;
  pause_at: number | null;
}

interface RuleRow {
  name: string;
  summary: string;
  severity: "remark" | "warning" | "severe";
  explained_by: Array<string>;
  thresholds: Record<string, number | null>;
  rows: number;
  steps: number;
  state: string;
}

interface RuleTrial {
  rule: string;
  numbers: Record<string, number>;
  steps: Array<number>;
  n: number;
  problem: string;
}

interface RunGroupLine {
  text: string;
  n: number;
  x: Array<number | null>;
  mean: Array<number | null>;
  low: Array<number | null>;
  high: Array<number | null>;
  last: number | null;
  std: number | null;
}

interface RunRow {
  run: string;
  name: string;
  begun_ms: number;
  steps: number;
  finished: boolean;
  scalar: string;
  line: Array<number | null>;
  last: number | null;
  differs: string;
  problem: string;
}

interface ScaleClick {
  v: number;
  type: "scale";
  id: string;
  name: string;
  factor: number;
  hold: boolean;
}

interface SelectionMessage {
  v: number;
  type: "selection";
  home: string;
  series: Array<[string, string]>;
  window: [number, number] | null;
  log_heat: boolean | null;
  cells: "max" | "mean";
  log_y: boolean | null;
  y_limits: [number, number] | null;
  outliers: boolean;
  charts: Array<ChartMessage>;
  log_x: boolean;
  smooth: number;
  x_axis: "step" | "time" | "epoch";
  rows: Array<string>;
  folds: Array<string>;
  others: Array<string>;
  ratio_to: string;
  aligned: "step" | "time" | "samples" | "epochs" | "loss";
  apart: [number, number];
  grouped: boolean;
  chosen_colors: Array<[string, string, number]>;
}

interface SetClick {
  v: number;
  type: "set";
  id: string;
  name: string;
  value: number;
  group: number | null;
  hold: boolean;
}

interface ShowGraph {
  v: number;
  type: "show_graph";
  view: string;
}

interface ShowLook {
  v: number;
  type: "show_look";
  view: string;
  module: string;
  step: number;
  other: number;
  sample: number;
}

interface SilentRow {
  kind: "waiting" | "compiled" | "silent";
  reason: string;
  probes: Array<number>;
}

interface StatusMessage {
  v: number;
  type: "status";
  state: "waiting" | "training" | "paused" | "idle" | "finished" | "failed";
  unheard: boolean;
  step: number;
  end_step: number;
  epoch: number;
  seconds_left: number | null;
  rate: number | null;
  cost_percent: number | null;
  budget: string;
  progress: string;
  route: string;
  scalar?: [string, number | null, Array<number | null>];
  attached: Array<[string, string, string]>;
  recorded: Record<string, Array<string>>;
  logged: Array<string>;
  tallies: Array<[number, number, number]>;
  silent: Array<SilentRow>;
  costs: Record<string, number>;
  vectors: Record<string, "bars" | "curve" | "dashes" | "">;
  problems: Array<ProblemRow>;
  tickets: Array<TicketRow>;
  can: Record<string, string>;
  record: string;
  device: string;
  nbytes: number;
  flushed_age_s: number | null;
  dropped_rows: number;
}

interface TableRequest {
  type: string;
  view: string;
  text: string;
  names: Array<string>;
  runs: Array<number>;
}

interface TicketMessage {
  id: string;
  state: "queued" | "applied" | "refused";
  queued_step: number;
  applied_step: number;
  text: string;
  v: number;
  type: "ticket";
}

interface TicketRow {
  id: string;
  state: "queued" | "applied" | "refused";
  queued_step: number;
  applied_step: number;
  text: string;
}

interface TryBreak {
  v: number;
  type: "try_break";
  module: string;
  quantity: string;
  sign: ">" | "<" | ">=" | "<=" | "crosses";
  number: number | null;
  for_rows: number;
}

interface TryRule {
  v: number;
  type: "try_rule";
  rule: string;
  numbers: Record<string, number>;
}

interface UnbreakClick {
  v: number;
  type: "unbreak";
  id: string;
  which: number;
}

interface VectorFrameRow {
  module: string;
  n: number;
  scale: number;
}

interface VectorsFrame {
  v: number;
  type: "vectors";
  seq: number;
  layout: Array<Array<[number, number]>>;
  quantity: string;
  rows: Array<VectorFrameRow>;
  columns: number;
  first_step: number;
  last_step: number;
  end_step: number;
  keys: Array<string>;
  at: Array<number | null>;
  low_edges: Array<number | null>;
  high_edges: Array<number | null>;
  n_lanes: number;
  has_series: boolean;
  glyph: "bars" | "curve" | "dashes" | "";
  low: number | null;
  high: number | null;
  log: boolean;
  colours: "value" | "share" | "sign";
}

interface ViewRow {
  name: string;
  summary: string;
  folded: boolean;
  cost_s: number | null;
  every_s: number | null;
  error: string;
  where: string;
  n_errors: number;
}

interface Viewport {
  v: number;
  type: "viewport";
  view: string;
  widths: Record<string, number>;
  pixel_ratio: number;
}

interface ViewsMessage {
  v: number;
  type: "views";
  rows: Array<ViewRow>;
}

interface Visible {
  v: number;
  type: "visible";
  view: string;
  visible: boolean;
}

interface WayBackInfo {
  restores: string;
  why_not: string;
  until: number | null;
  waits: string;
}

type AnyMessage =
  | Ack
  | AlertsMessage
  | AttachClick
  | BreakClick
  | BudgetClick
  | BuildGraphClick
  | CompareWithClick
  | CompiledClick
  | ControlClick
  | DetachClick
  | DrawnFrame
  | EditBreakClick
  | EditRuleClick
  | EditView
  | EsmMessage
  | EvaluateClick
  | ExamineClick
  | ExportClick
  | Exported
  | FoldClick
  | HeatFrame
  | Hello
  | HintClosed
  | LinesFrame
  | ListRuns
  | LookClick
  | MessagesEnd
  | MessagesStart
  | ModelMessage
  | Moved
  | OutputKeep
  | OutputShow
  | Ping
  | Pointed
  | PresetClick
  | ReleaseClick
  | RescheduleClick
  | RewindClick
  | ScaleClick
  | SelectionMessage
  | SetClick
  | ShowGraph
  | ShowLook
  | StatusMessage
  | TicketMessage
  | TryBreak
  | TryRule
  | UnbreakClick
  | VectorsFrame
  | Viewport
  | ViewsMessage
  | Visible;
