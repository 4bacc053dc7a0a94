// A panel that was saved without its kernel, and the front ends that keep it: what is read of them.

/** What a saved panel says of itself; `explorer/handed_on` writes it. */
interface SavedMessage {
  type: "saved";
  place: string;
  open: string;
  ended_ms: number;
  nbytes: number;
  left_out: string[];
  unreadable: string[];
  most: number;
  clock: SavedClock;
  epochs: LinesFrame["knots"];
  /** (module, quantity, colour) */
  colours: Array<[string, string, number]>;
  templates: Record<"head" | "heat" | "lines" | "smoothed" | "limits" | "colors" | "colored" | "faint", string>;
  code_axes: Record<PanelSelection["x_axis"], CodeAxis>;
}

interface SavedClock {
  steps: number[];
  seconds: number[];
}

/** The frames that were saved, by kind. */
interface SavedKinds {
  lines: LinesFrame;
  heat: HeatFrame;
  vectors: VectorsFrame;
  left_lines: LinesFrame;
  left_heat: HeatFrame;
  look: ShownLook;
  graph: ShownGraph;
}

type SavedFrame<Kind extends keyof SavedKinds> = { message: SavedKinds[Kind]; buffers: Buffers };

interface SavedPieces {
  has(kind: keyof SavedKinds, key: string): boolean;
  read<Kind extends keyof SavedKinds>(kind: Kind, key: string): Promise<SavedFrame<Kind> | null>;
}

/** An opened package: the first messages, and where each frame is in it. */
interface SavedPage {
  first: SavedFirst[];
  pieces: Array<[string, string, number, number]>;
  read(place: [number, number]): Promise<ArrayBuffer>;
}

type SavedFirst = ModelMessage | StatusMessage | SelectionMessage | AlertsMessage | SavedMessage;

/** A file that is made without a kernel, or why it is not. */
interface SavedFile {
  filename: string;
  mime: string;
  buffer?: Uint8Array<ArrayBuffer>;
  text?: string;
  error?: string;
  note?: string;
}

/** What a view is given by anywidget, or by an opened package. */
interface WidgetView extends Comm {
  saved?: SavedPage;
  get?(name: string): string | undefined;
  widget_manager?: WidgetManager;
}

/** JupyterLab's manager of widgets; other front ends have less of it. */
interface WidgetManager {
  /** Of JupyterLab and Notebook 7; other front ends do not say how their kernel is. */
  kernel?: { status?: string } | null;
  context?: NotebookContext;
  get_model(id: string): Promise<OwnWidget>;
  create_view(model: OwnWidget): Promise<LuminoView>;
}

interface NotebookContext {
  model: NotebookModel;
  addSibling?(widget: LuminoBox, options: { ref: string; mode: string }): void;
}

interface NotebookModel {
  cells: Iterable<{ outputs?: { length: number; get(place: number): { data: Record<string, { model_id?: string }> } } }>;
  getMetadata(name: string): Record<string, { state?: Record<string, WidgetState> }> | undefined;
  setMetadata(name: string, value: object): void;
}

interface WidgetState {
  model_name: unknown;
  model_module: unknown;
  model_module_version: unknown;
  state: Record<string, unknown> & { layout?: string };
}

interface OwnWidget {
  model_id: string;
  comm_live: boolean;
  attributes: Record<string, unknown>;
  get(name: "layout"): OwnWidget;
}

type LuminoSignal = { connect(slot: () => void): void };

interface LuminoView {
  luminoWidget: object & { disposed: LuminoSignal };
  remove(): void;
}

/** A widget of Lumino, whose class no module gives us. */
interface LuminoBox {
  node: HTMLElement;
  title: { label: string; caption: string; closable: boolean };
  disposed: LuminoSignal;
  isAttached: boolean;
  isDisposed: boolean;
  onCloseRequest: () => void;
  addClass(name: string): void;
  dispose(): void;
}

interface LuminoClass {
  new (): LuminoBox;
  attach(widget: object, node: HTMLElement): void;
}

/** Ids of the widgets whose panels are alive in this page. */
declare var notebookProbeLive: Set<string | undefined> | undefined;

/** A part of a formula. */
type FormulaNode =
  | { kind: "number"; value: number }
  | { kind: "series"; quantity: string; module: string | null }
  | { kind: "operation"; sign: string; left: FormulaNode; right: FormulaNode }
  | { kind: "call"; name: string; of: FormulaNode };
