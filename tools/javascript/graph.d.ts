// The graph of a network: as it is sent, folded, laid out and seen.

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

interface GraphNode {
  name: string;
  kind: string;
  op: string;
  module: string;
  shape: number[];
  dtype: string;
  /** Names of the parameters and constants that it takes. */
  given: string[];
}

interface GraphModule {
  path: string;
  kind: string;
  nParams: number;
  calls: number;
}

/** See js/parts/graph/folding/network.js. */
interface GraphNetwork {
  nodes: GraphNode[];
  /** Places of the nodes that get boxes. */
  shown: number[];
  into: number[][];
  out: number[][];
  modules: Map<string, GraphModule>;
  /** Path of a module -> the paths right below it. */
  children: Map<string, string[]>;
  /** Containers whose modules are called here and there. */
  loose: Set<string>;
  how: string;
}

/** A box of the graph: an operator, or a module with all of its operators. */
interface GraphBox {
  key: string;
  path: string | null;
  nodes: number[];
  scope: GraphScope | null;
}

interface GraphScope {
  path: string;
  boxes: GraphBox[];
  edges: GraphEdge[];
}

/** Between places of boxes, IN or OUT: the node it leaves first, and how many edges it stands for. */
interface GraphEdge {
  from: number;
  to: number;
  source: number;
  n: number;
}

/** A box in its place: of an open module the frame around its boxes. */
interface GraphItem extends Omit<GraphBox, "scope"> {
  x: number;
  y: number;
  width: number;
  height: number;
  isOpen: boolean;
  depth: number;
  /** Key of the frame that it lies in. */
  frame: string | null;
}

/** An edge as it is drawn, between boxes by their keys, from the node `source`. */
interface GraphRoute {
  points: Array<[number, number]>;
  from: string | null;
  to: string | null;
  source: number;
  /** Whether it really begins and ends there, not inside. */
  begins: boolean;
  ends: boolean;
}

interface GraphLayout {
  width: number;
  height: number;
  items: GraphItem[];
  routes: GraphRoute[];
}

/** The layout of an open module, with where edges enter and leave it. */
interface ScopeLayout extends GraphLayout {
  in: number | null;
  out: number | null;
}

/** The shape of what flows along an edge, written beside it. */
interface GraphLabel {
  x: number;
  y: number;
  text: string;
  align: CanvasTextAlign;
}

/** The plane's point at the upper left, and how large it is drawn. */
interface GraphCamera {
  x: number;
  y: number;
  zoom: number;
}

type GraphRoom = { width: number; height: number };

/** What the heat map has of a module, and its colour; null where there is none. */
type GraphValue = { rgb: number[] | null; text: string };

/** What the boxes need at a drawing; sets of their keys. */
interface GraphLook {
  marked: Set<string>;
  holding: Set<string>;
  found: Set<string>;
  lit: Set<string>;
  labelOf(item: GraphItem): string;
  valueOf(item: GraphItem): GraphValue | null;
}

/** Of a box what it says. */
type GraphPlace = Pick<GraphBox, "path" | "nodes">;

type ToldValue = { quantity: string; value: GraphValue | null };

type GraphPlane = ReturnType<typeof import("../../notebook_probe/explorer/js/parts/graph/plane.js").createPlane>;

/** What a search goes through: a module, or a node by its place. */
interface SearchRow {
  path: string;
  kind: string;
  name: string;
  node: number | null;
}
