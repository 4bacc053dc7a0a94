"""First operation in which two models differ, as a result that is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal, TypeAlias

from notebook_probe.examine.operations.log import LoggedOperation

__all__ = ["DifferenceKind", "FirstDifference", "Place", "place_of"]

DifferenceKind: TypeAlias = Literal[
    "none", "operation", "arguments", "inputs", "result", "graph", "weights"
]

WHY: dict[DifferenceKind, str] = {
    "operation": "another operation",
    "arguments": "other arguments",
    "inputs": "the same operation on other values, though all before it are the same",
    "result": "another result of the same operation on the same values, as of a random generator",
    "graph": "another graph: a part of the backward is missing in one of them",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Place of an operation.

    Attributes
    ----------
    operation : str
        Name in torch, such as ``aten.mul.Tensor``.
    arguments : str
        Arguments, ``~`` for each tensor.
    module : str
        Path of the module; "" for the model itself and the loss.
    file, line, code : str, int, str
        The user's source line; file "" if there is none.
    """

    operation: str
    arguments: str
    module: str
    file: str
    line: int
    code: str

    def __str__(self) -> str:
        at = f" at {Path(self.file).name}:{self.line}" if self.file else ""
        code = f": {self.code}" if self.code else ""
        return f"{self.operation}({self.arguments}) in {self.module or 'the model'}{at}{code}"


@dataclass(frozen=True, slots=True, repr=False)
class FirstDifference:
    """The first operation in which one step of two models differs.

    Attributes
    ----------
    kind : str
        ``"operation"`` or ``"arguments"``: this operation differs; ``"inputs"``: it gets other
        values, such as swapped variables or constants; ``"result"``: equal inputs give another
        result, for example with another random generator or kernel; ``"graph"``: a part of the
        backward is missing; ``"weights"``: all operations are the same, the weights are not;
        ``"none"``.
    direction : "forward" or "backward"
        Pass in which values first differ.
    this, other : Place or None
        The operation in this model and in the other one; None where there is none.
    weights : tuple of str
        Parameters and buffers that differ, which were made equal for the comparison.
    n_operations : tuple of int
        Number of operations of the step in this model and in the other one.
    """

    kind: DifferenceKind
    direction: Literal["forward", "backward"] = "forward"
    this: Place | None = None
    other: Place | None = None
    weights: tuple[str, ...] = ()
    n_operations: tuple[int, int] = (0, 0)

    @property
    def module(self) -> str:
        """Path of the module with the difference; "" for the model itself, or if there is none."""
        place = self.this or self.other
        return "" if place is None else place.module

    @property
    def title(self) -> str:
        """The result in a sentence."""
        if self.kind == "none":
            return f"No difference in {self.n_operations[0]} operations of a step"
        if self.kind == "weights":
            return f"The same {self.n_operations[0]} operations with different {self._weights}"
        where = self.module or "the model"
        return f"The {self.direction} first differs at {where}: {WHY[self.kind]}"

    @property
    def _weights(self) -> str:
        first, *rest = self.weights
        return f"weights: {first}" + (f" and {len(rest)} more" if rest else "")

    def lines(self) -> Iterator[str]:
        """Yield the report, line by line."""
        yield self.title
        if self.this is not None or self.other is not None:
            yield f"  this:  {self.this or 'nothing'}"
            yield f"  other: {self.other or 'nothing'}"
        if self.weights and self.kind != "weights":
            yield f"  made equal before: different {self._weights}"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {"title": self.title, "module": self.module, **asdict(self)}

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def __bool__(self) -> bool:
        return self.kind != "none"

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def place_of(operation: LoggedOperation | None) -> Place | None:
    """Return the place of an operation."""
    if operation is None:
        return None
    line = operation.line
    return Place(
        operation.name, operation.arguments, operation.module, line.file, line.line, line.code
    )
