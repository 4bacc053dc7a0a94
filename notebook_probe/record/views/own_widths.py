"""Vectors whose last element is the width of their bins, seen as counts and as a number each.

They are stored together, so that every row has its edges.
"""

from __future__ import annotations

from collections.abc import Sequence

from notebook_probe.record.format.source import (
    ChunkGrid,
    Floats,
    StreamView,
    Variable,
    VectorView,
)
from notebook_probe.record.views.wrapped import WrappedStream

__all__ = ["Counts", "Widths", "seen_as", "width_of"]

WIDTH = "_width"


def width_of(name: str) -> str:
    """Return the name of the width that belongs to a quantity or an axis."""
    return f"{name}{WIDTH}"


def seen_as(stream: StreamView) -> tuple[Variable, ...]:
    """Return the quantities of a stream, and the widths among them."""
    axis = getattr(stream, "axis", None)
    if axis is None or not axis.has_width:
        return stream.variables
    return *stream.variables, *_widths(stream)


def _widths(stream: StreamView) -> tuple[Variable, ...]:
    return tuple(
        Variable(width_of(one.name), long_name=f"width of the bins of {one.name}")
        for one in stream.variables
    )


class Counts(WrappedStream):
    """A VectorView of all but the width."""

    def __init__(self, stream: VectorView) -> None:
        super().__init__(stream)
        self.axis = stream.axis.without_width

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        return self._stream.values(quantity, start, stop, modules)[..., :-1]


class Widths(WrappedStream):
    """A StreamView of the widths alone."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        return _widths(self._stream)

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        values = self._stream.values(quantity.removesuffix(WIDTH), start, stop, modules)
        width: Floats = values[..., -1]
        return width

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        return self._stream.chunk_grid(quantity.removesuffix(WIDTH))
