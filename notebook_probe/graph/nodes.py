"""What a graph consists of: nodes, and the modules that they belong to."""

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
    """One operator, or what goes into the network or comes out of it.

    Attributes
    ----------
    name : str
        Its own, ``"conv2d_3"``.
    kind : NodeKind
        ``"module"`` where of a module no operator is known.
    op : str
        ``"conv2d"``; of a parameter or buffer its name in its module, ``"weight"``.
    module : str
        Path of the innermost module that it belongs to; ``""`` the network.
    shape : tuple of int, optional
        Of the tensor that it gives, of several the first; None where it is not known.
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
    """A module that the graph's nodes belong to, or that lies round one.

    Attributes
    ----------
    path, class_name : str
    n_params : int
        Elements of its parameters and of those below it, each once.
    calls : int
        How often it was called; none where its parts are called alone.
    """

    path: str
    class_name: str
    n_params: int
    calls: int
