"""The graph of a network as a value, and as JSON; without torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

from notebook_probe.graph.dot import dot
from notebook_probe.graph.nodes import VERSION, GraphKind, ModuleEntry, Node
from notebook_probe.graph.parsing import parsed

__all__ = ["Graph"]


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph of a network.

    Attributes
    ----------
    how : "exported", "called" or "tree"
        Made by torch.export, from one observed call, or as the tree of modules.
    model : str
        The network's class.
    nodes : tuple of Node
        Nodes in topological order; operators in the order of execution.
    edges : tuple of (int, int)
        Places in ``nodes``: what the first gives the second takes; the first is the smaller.
    modules : tuple of ModuleEntry
        Modules that were called and those around them, in definition order.
    why : str
        Reason against a better way, as text; empty if it was exported.

    Examples
    --------
    >>> nodes = Node("x", "input", "", "", (8, 4)), Node("linear", "operator", "linear", "fc")
    >>> entries = ModuleEntry("", "Net", 10, 1), ModuleEntry("fc", "Linear", 10, 1)
    >>> graph = Graph("exported", "Net", nodes, ((0, 1),), entries)
    >>> str(graph)
    'Net: exported, 1 operator of 1 module'
    >>> Graph.from_json(graph.to_json()) == graph
    True
    """

    how: GraphKind
    model: str
    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int], ...]
    modules: tuple[ModuleEntry, ...]
    why: str = ""

    @property
    def operators(self) -> tuple[Node, ...]:
        """The nodes that do something."""
        return tuple(node for node in self.nodes if node.kind in ("operator", "module"))

    def __str__(self) -> str:
        n_modules = len({node.module for node in self.operators})
        if self.how == "tree":
            return f"{self.model}: the tree of its modules, {n_modules} of them"
        operators, modules = _counted(len(self.operators), "operator"), _counted(n_modules)
        return f"{self.model}: {self.how}, {operators} of {modules}"

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "version": VERSION,
            "how": self.how,
            "model": self.model,
            "why": self.why,
            "nodes": [asdict(node) | {"shape": _listed(node.shape)} for node in self.nodes],
            "edges": [[*edge] for edge in self.edges],
            "modules": [
                {
                    "path": one.path,
                    "class": one.class_name,
                    "n_params": one.n_params,
                    "calls": one.calls,
                }
                for one in self.modules
            ],
        }

    @classmethod
    def from_json(cls, found: Any) -> Self:
        """Parse the result of `to_json`; other content is rejected.

        Raises
        ------
        RecordFormatError
            It is no graph, one of a newer version, or too large to be one.
        """
        return cls(**parsed(found))

    def to_dot(self) -> str:
        """Return graphviz DOT text with modules as clusters; needs no package.

        Examples
        --------
        >>> Path("network.dot").write_text(run.graph().to_dot())  # doctest: +SKIP
        """
        return dot(self.model, self.nodes, self.edges, self.modules)


def _counted(n: int, what: str = "module") -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


def _listed(shape: Iterable[int] | None) -> list[int] | None:
    return None if shape is None else [*shape]
