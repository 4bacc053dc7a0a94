"""Frames of vectors, and their signs; other messages are in `frames` and `wire`."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

from notebook_probe.record.views.thinning.colour_scale import ColourMap

__all__ = ["NEVER", "Glyph", "VectorFrameRow", "VectorsFrame"]

# Offsets from the first step may be negative, so -1 cannot mean "none".
NEVER = -(2**31)
"""Step of a column without a vector."""

Glyph: TypeAlias = Literal["bars", "curve", "dashes", ""]
"""Sign of a vector: bins or channels, a spectrum, heads; none if it is not drawn."""


class VectorFrameRow(TypedDict):
    """Vectors of one module in the frame."""

    module: str
    n: int
    """Number of elements; they follow those of the row before."""
    scale: float
    """Factor for the coordinates along the axis."""


class VectorsFrame(TypedDict):
    """Vectors of the home quantity: a small picture per module, elements x columns.

    buffers: [0] the upper halves of float32 means (element, column), row-major, rows one after the
    other: NaN where nothing was measured, infinity where something was not finite; [1] float32: the
    last vector of each row; [2] int32 (row, column): step at which a column's vector was measured,
    from ``first_step``, which may be before the column; `NEVER` without a vector.
    """

    v: int
    type: Literal["vectors"]
    seq: int
    layout: list[list[tuple[int, int]]]
    """`Layout` of `frames`."""
    quantity: str
    rows: list[VectorFrameRow]
    columns: int
    first_step: int
    last_step: int
    end_step: int
    """Last step that the run has in the last column."""
    keys: list[str]
    """Names of the elements' series.

    Empty if rows differ in length, so that elements are numbered, or if an element is no series.
    """
    at: list[float | None]
    """Coordinates of the elements along the axis, if there are any."""
    low_edges: list[float | None]
    """Lower edges of bins; empty unless this is a histogram."""
    high_edges: list[float | None]
    n_lanes: int
    """Number of last elements per row that count non-finite values."""
    has_series: bool
    """True if an element can be drawn as a line."""
    glyph: Glyph
    low: float | None
    high: float | None
    log: bool
    colours: ColourMap
