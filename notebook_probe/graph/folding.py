"""A graph folded by module: what is drawn of it as boxes, and what flows between them."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_probe.graph.graph import Graph
from notebook_probe.graph.nodes import Node

__all__ = ["Flow", "Folded", "FoldedCall", "fold"]

GIVEN = ("parameter", "buffer", "constant")
"""Kinds of nodes that are merged into their takers."""


@dataclass(frozen=True, slots=True)
class FoldedCall:
    """One call of a module with everything in it, or a single node.

    Attributes
    ----------
    path : str
        Path of the module; for a single node, of the innermost module it belongs to.
    label : str
        The module's class, or what a node does or is called.
    n_params : int
        Parameters of the module; 0 for a single node.
    nodes : tuple of int
        Places in the graph; more than one, or folded, where it is a module.
    is_module : bool
    """

    path: str
    label: str
    n_params: int
    nodes: tuple[int, ...]
    is_module: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """Tensors that one box passes to another.

    Attributes
    ----------
    start, end : int
        Places of boxes; the first is the smaller.
    shapes : tuple
        Shapes of the tensors, each of another node; None if unknown.
    """

    start: int
    end: int
    shapes: tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """Boxes in topological order, and the flows between them."""

    boxes: tuple[FoldedCall, ...]
    flows: tuple[Flow, ...]


def fold(graph: Graph, depth: int = 1) -> Folded:
    """Fold every module at ``depth`` below the network into one box for each of its calls.

    A less deep module without modules in it is a box, too; with 0 every operator is a box. A
    module's box is a run of consecutive operators below the same module: so a module called twice
    is two boxes, and no flow goes back. Parameters, buffers and constants are in none.

    Examples
    --------
    >>> operators = [Node(name, "operator", "relu", "a") for name in ("one", "two")]
    >>> nodes = (Node("x", "input", "", ""), *operators)
    >>> folded = fold(Graph("called", "Net", nodes, ((0, 1), (1, 2)), ()))
    >>> [box.nodes for box in folded.boxes], [(flow.start, flow.end) for flow in folded.flows]
    ([(0,), (1, 2)], [(0, 1)])
    """
    groups = _runs(graph, depth)
    entries = {one.path: one for one in graph.modules}
    boxes = []
    for path, places in groups:
        first = graph.nodes[places[0]]
        if path is None:
            boxes.append(FoldedCall(first.module, _label(first), 0, tuple(places), is_module=False))
        else:
            entry = entries.get(path)
            label, n_params = (entry.class_name, entry.n_params) if entry else (path, 0)
            boxes.append(FoldedCall(path, label, n_params, tuple(places), is_module=True))
    return Folded(tuple(boxes), _flows(graph, groups))


def _runs(graph: Graph, depth: int) -> list[tuple[str | None, list[int]]]:
    """Places that one box holds, with the path of its module if it is one."""
    groups: list[tuple[str | None, list[int]]] = []
    parents = {one.path.rpartition(".")[0] for one in graph.modules}
    for place, node in enumerate(graph.nodes):
        if node.kind in GIVEN:
            continue
        path = _folded_path(node, depth, parents)
        if path is not None and groups and groups[-1][0] == path:
            groups[-1][1].append(place)
        else:
            groups.append((path, [place]))
    return groups


def _folded_path(node: Node, depth: int, parents: set[str]) -> str | None:
    """Path of the module that a node is folded into; None if it is separate."""
    if node.kind in ("input", "output") or not (depth and node.module):
        return None
    parts = node.module.split(".")
    is_open = len(parts) < depth and node.module in parents
    return None if is_open else ".".join(parts[:depth])


def _label(node: Node) -> str:
    return node.op.rstrip("_") or node.name


def _flows(graph: Graph, groups: list[tuple[str | None, list[int]]]) -> tuple[Flow, ...]:
    box_of = {place: number for number, (_, places) in enumerate(groups) for place in places}
    found: dict[tuple[int, int], dict[int, tuple[int, ...] | None]] = {}
    for start, end in graph.edges:
        if start in box_of and end in box_of and box_of[start] != box_of[end]:
            given = found.setdefault((box_of[start], box_of[end]), {})
            given[start] = graph.nodes[start].shape
    return tuple(Flow(*pair, tuple(given.values())) for pair, given in sorted(found.items()))
