"""Parts of a graph: nodes, and the modules that they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["VERSION", "GraphKind", "ModuleEntry", "Node", "NodeKind"]

VERSION = 1

GraphKind: TypeAlias = Literal["exported", "called", "tree"]
NodeKind: TypeAlias = Literal[
    "input", "parameter", "buffer", "constant", "operator", "module", "output"
]


@dataclass(frozen=True, slots=True)
class Node:
    """One operator, or an input or output of the network.

    Attributes
    ----------
    name : str
        Unique name, ``"conv2d_3"``.
    kind : NodeKind
        ``"module"`` where of a module no operator is known.
    op : str
        ``"conv2d"``; of a parameter or buffer its name in its module, ``"weight"``.
    module : str
        Path of the innermost module that it belongs to; ``""`` the network.
    shape : tuple of int, optional
        Shape of its output, the first of several; None if unknown.
    dtype : str, optional
        ``"float32"``.
    """

    name: str
    kind: NodeKind
    op: str
    module: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class ModuleEntry:
    """A module with nodes of the graph in it, directly or further inside.

    Attributes
    ----------
    path, class_name : str
    n_params : int
        Elements of its parameters and of those below it, each once.
    calls : int
        Number of calls; 0 if its parts are called directly.
    """

    path: str
    class_name: str
    n_params: int
    calls: int
