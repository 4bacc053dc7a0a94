"""A graph while it is being made: first all nodes and edges, then only the relevant ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from torch import Tensor

from notebook_probe.graph.graph import Graph
from notebook_probe.graph.nodes import GraphKind, ModuleEntry, Node, NodeKind
from notebook_probe.graph.parsing import MOST_CHARACTERS, MOST_EDGES, MOST_NODES
from notebook_probe.model.map import ModelMap
from notebook_probe.model.parameter_slots import n_elements
from notebook_probe.model.unwrapped import without_wrappers

__all__ = ["UNKNOWN", "Draft", "Given", "described"]

Given: TypeAlias = tuple[tuple[int, ...] | None, str | None]
"""Shape and dtype of a node's output."""

UNKNOWN: Given = None, None


class Draft:
    """Nodes and edges of a model's graph, added in topological order.

    Parameters
    ----------
    model_map : ModelMap
    """

    def __init__(self, model_map: ModelMap) -> None:
        self._map = model_map
        self._nodes: list[Node] = []
        self._sources: list[tuple[int, ...]] = []
        self._names: dict[str, int] = {}

    def add(
        self,
        kind: NodeKind,
        name: str,
        op: str = "",
        module: str = "",
        given: Given = UNKNOWN,
        sources: Iterable[int] = (),
    ) -> int:
        """Add a node that takes what others give; returns its place."""
        place = len(self._nodes)
        if place >= 4 * MOST_NODES:  # some of which may not count
            raise ValueError(f"more than {MOST_NODES} nodes")
        path = self._path(module)
        self._nodes.append(Node(self._free(name), kind, _cut(op), _cut(path), *given))
        self._sources.append(tuple(sorted({*sources})))
        return place

    def finish(self, how: GraphKind, calls: Mapping[str, int], why: str = "") -> Graph:
        """Return the graph; ``calls`` has the number of calls of each module.

        Raises
        ------
        ValueError
            It is too large to be readable.
        """
        kept = self._that_count() if how != "tree" else [True] * len(self._nodes)
        places = [n - 1 for n in accumulate(kept)]
        nodes = tuple(node for node, is_kept in zip(self._nodes, kept, strict=True) if is_kept)
        edges = tuple(
            (places[start], places[end])
            for end, sources in enumerate(self._sources)
            for start in sources
            if kept[start] and kept[end]
        )
        if len(nodes) > MOST_NODES or len(edges) > MOST_EDGES:
            raise ValueError(f"{len(nodes)} nodes and {len(edges)} edges")
        of_paths: dict[str, int] = {}
        for path, n in calls.items():
            of_paths[self._path(path)] = of_paths.get(self._path(path), 0) + n
        paths = {*of_paths, *(node.module for node in nodes)}
        return Graph(how, self._map.class_name, nodes, edges, self._entries(paths, of_paths), why)

    def _path(self, path: str) -> str:
        """Return the first path of a module, as users know it."""
        name = without_wrappers(path)
        return self._map.first_path(name) or name

    def _free(self, name: str) -> str:
        """Return the name, with a number if it is taken."""
        name = _cut(name)
        n = self._names[name] = self._names.get(name, -1) + 1
        return name if n == 0 else self._free(f"{name}_{n}")

    def _that_count(self) -> Sequence[bool]:
        """Return the nodes that lead to an output, and operators that depend on an input.

        The others are constants, or were never used.
        """
        leads = [node.kind == "output" for node in self._nodes]
        fed = [node.kind == "input" for node in self._nodes]
        # One pass each way is enough, as nodes are in topological order.
        for place, sources in enumerate(self._sources):
            fed[place] |= any(fed[source] for source in sources)
        for place in reversed(range(len(self._nodes))):
            if leads[place] or fed[place]:
                for source in self._sources[place]:
                    leads[source] = True
        return [one or other for one, other in zip(leads, fed, strict=True)]

    def _entries(self, paths: Iterable[str], calls: Mapping[str, int]) -> tuple[ModuleEntry, ...]:
        """Return the entries of these modules and of the modules around them."""
        shown = {""}
        for path in paths:
            while path:
                shown.add(path)
                path = path.rpartition(".")[0]
        return tuple(
            ModuleEntry(
                path,
                _cut(type(module).__name__),
                n_elements(self._map.slots(path, below=True)),
                calls.get(path, 0),
            )
            for path, module in self._map.modules.items()
            if path in shown
        )


def described(value: Any) -> Given:
    """Shape and dtype of a tensor, of several the first; none of anything else.

    Examples
    --------
    >>> import torch
    >>> described((torch.zeros(2, 3), None))
    ((2, 3), 'float32')
    """
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if not isinstance(value, Tensor):
        return UNKNOWN
    dtype = str(value.dtype).removeprefix("torch.")
    try:
        return tuple(int(size) for size in value.shape), dtype
    except (RuntimeError, TypeError):  # a size that only the data tell
        return None, dtype


def _cut(text: str) -> str:
    return text[:MOST_CHARACTERS]
