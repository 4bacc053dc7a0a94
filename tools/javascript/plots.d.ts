// What the plots draw with: scales, marks, series as they are placed, and what one paint needs.

interface Tick {
  value: number;
  label: string;
}

interface Transform {
  forward(value: number): number;
  inverse(u: number): number;
}

/** A scale, see js/plots/scale.js: `factor` and `offset` act after `forward`. */
interface Axis extends Transform {
  low: number;
  high: number;
  ticks: Tick[];
  factor: number;
  offset: number;
  /** Middle of the lane of what has no logarithm, or null. */
  lane: number | null;
  /** What stands behind the last tick. */
  word?: string;
  /** Pixel of a transformed value. */
  at(u: number): number;
  place(value: number): number;
  value(pixel: number): number;
}

/** One of the x axes that the lines may have. */
interface LineAxisKind {
  scaleOf(
    state: PanelState,
    drawn: Array<Pick<DrawnSeries, "n" | "x" | "first_step" | "last_step">>,
    left: number,
    right: number,
  ): Axis | null;
  word: string;
  named(x: number): string;
}

/** Step -> x of the lines, and back. */
interface StepMapping {
  x(step: number): number;
  step(x: number): number;
}

/** Where a plot is on its canvas. */
interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** With the strip of the history below the rows: `foot` is where the step axis stands. */
interface PlotBox extends Box {
  foot: number;
}

interface StepMark {
  step: number;
  x: number;
  kind: string;
  text: string;
  left?: boolean;
}

/** A mark as it is painted, with the texts of those it hides. */
interface PlacedMark {
  px: number;
  step: number;
  kind: string;
  left?: boolean;
  texts: string[];
}

/** Points in the plotted scale. */
interface PlacedPoints {
  u: ArrayLike<number>;
  v: ArrayLike<number>;
}

/** A series of this run, or of the line that was left, as the axes place it. */
type PreparedSeries = Omit<DrawnSeries, "average"> & {
  u: Float64Array;
  v: Float64Array;
  average: PlacedPoints;
  /** How many have no logarithm, and all of these. */
  unplaced: number;
  lane: PlacedPoints | null;
  name?: undefined;
  missing?: undefined;
};

type Band = { low: Float64Array; high: Float64Array };

/** A series of another run, or the mean of several in a band. */
type BesideSeries = BesideLine & {
    x: Float64Array;
    y: Float32Array;
    u: Float64Array;
    v: Float64Array;
    average: PlacedPoints;
    marks: number[];
    /** Of the run. */
    name: string;
    colour: number;
    chart: number;
    log_y: boolean;
    dash: number[];
    band: Band | null;
    /** Why there is no line; "" where there is one. */
    missing: string;
    left?: undefined;
  };

type PaintedSeries = PreparedSeries | BesideSeries;

/** The ends of the y axis of the lines, and which values are outside. */
interface ShownRange {
  low: number;
  high: number;
  lane: boolean;
  /** Whether the ends stay as they are, without rounding to ticks. */
  exact: boolean;
  beyond: { n: number; farthest: number } | null;
}

/** What the charts of the lines are made of: this run, other runs, all steps behind a window. */
interface ChartedLines {
  prepared: PreparedSeries[];
  beside: BesideSeries[];
  /** All steps, drawn where those of a window end. */
  back: PreparedSeries[];
}

/** Series that share a value axis. */
interface LineChart extends ChartedLines {
  number: number;
  /** Whether no value is drawn in it. */
  isEmpty: boolean;
  log: boolean;
  range: ShownRange;
  box: Box;
  values: Axis;
}

/** The lines as last painted. */
interface PaintedLines {
  axis: Axis;
  charts: LineChart[];
  /** Of all charts. */
  box: Box;
  prepared: PaintedSeries[];
  mapping: StepMapping;
  marks: PlacedMark[];
}

/** One chart as it is painted. */
interface LinesView extends LineChart {
  axis: Axis;
  colours: Colours;
  /** Below the last chart; null below the others, which have no step axis either. */
  marks: PlacedMark[] | null;
  x0: number;
  label(series: PaintedSeries): string;
  isLogged(series: PaintedSeries): boolean;
  /** Whether another line is pointed at. */
  isDimmed(series: PaintedSeries): boolean;
  width: number;
}

interface ColourMap {
  /** [r, g, b] of a share. */
  at(share: number): number[];
  pixels: Uint32Array;
  hasGround: boolean;
}

interface Picture {
  image: HTMLCanvasElement;
  map: ColourMap;
  /** The scale of the colours; null where nothing is on it, or every row has its own. */
  values: Axis | null;
  /** First row of the image and number of rows. */
  placeOf(path: string): [number, number] | null;
}

interface HeatPicture extends Picture {
  frame: ShownHeat;
  /** Values of the cells. */
  cells: Float32Array;
  log: boolean;
  ground: string;
}

interface VectorPicture extends Picture {
  frame: DecodedVectors;
  /** First line of each row in the image. */
  tops: number[];
  cells?: undefined;
}

/** What the tree cuts its swatches from: the heat map, or vectors, as last painted. */
type ShownPicture = HeatPicture | VectorPicture;

/** The columns of the run that was left, in the colours of this one. */
type LeftPicture = { frame: DecodedHeat; image: HTMLCanvasElement };

/** A part of the heat map's rows: below a module, or of several. */
interface RowGroup {
  from: number;
  to: number;
  name: string;
  /** Of several the names of the outer ones. */
  first?: string;
  last?: string;
}

interface HeatView {
  axis: Axis;
  box: PlotBox;
  colours: Colours;
  image: HTMLCanvasElement;
  left: LeftPicture | null;
  /** All steps, behind those of a window that is being left. */
  back: LeftPicture | null;
  picture: HeatPicture;
  names: RowGroup[];
  frame: ShownHeat;
  marked: Set<string>;
  usual: number | null;
  /** Module -> the step from which on it is far from the other run. */
  parted: Map<string, number>;
  beside: { title: string; axis: string } | null;
  full: number;
}

/** The heat map as last painted. */
interface PaintedHeat {
  axis: Axis;
  box: PlotBox;
  frame: ShownHeat;
  left: LeftPicture | null;
  marks: PlacedMark[];
}

/** Where the picture of a row of vectors is. */
interface RowPlace {
  row: number;
  top: number;
  bottom: number;
}

interface VectorView {
  axis: Axis;
  box: PlotBox;
  colours: Colours;
  frame: DecodedVectors;
  places: RowPlace[];
  first: number;
  picture: VectorPicture;
  enlarged: number;
  marked: Set<string>;
  step: number | null;
  pointed: number | null;
  counts: boolean;
  log: boolean;
  units: string;
  full: number;
  width: number;
}

/** The vectors as last painted. */
interface PaintedVectors {
  axis: Axis;
  box: PlotBox;
  frame: DecodedVectors;
  places: RowPlace[];
  marks: PlacedMark[];
}
