"""Parts of a formula: numbers, series, signs, operations and calls of functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Call", "Constant", "Node", "Operation", "Reference"]


@dataclass(frozen=True, slots=True)
class Constant:
    """Number of a formula."""

    value: float


@dataclass(frozen=True, slots=True)
class Reference:
    """A recorded series, or those of several modules."""

    quantity: str
    module: str | None = None
    """Module or glob; None where the formula names none."""

    def __str__(self) -> str:
        return self.quantity if self.module is None else f"{self.quantity}@{self.module}"


@dataclass(frozen=True, slots=True)
class Operation:
    """One of ``+ - * / ^`` between two parts."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A function of one part."""

    function: str
    of: Node


Node: TypeAlias = Constant | Reference | Operation | Call
