"""Frames of vectors, and their signs; the other messages are in `wire`."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

from notebook_probe.record.views.thinning.colour_scale import ColourMap

__all__ = ["Glyph", "VectorRow", "VectorsFrame"]

Glyph: TypeAlias = Literal["bars", "curve", "dashes", ""]
"""Sign of a vector: of bins or channels, of a spectrum, of heads; none of what is not drawn."""


class VectorRow(TypedDict):
    """One module's vectors in the frame."""

    module: str
    n: int
    """Elements; they follow those of the row before."""
    scale: float
    """What the coordinates along the axis are to be multiplied by."""


class VectorsFrame(TypedDict):
    """Vectors of the home quantity: a small picture per module, elements x columns.

    buffers: [0] the upper halves of float32 means (element, column), row-major, rows one after the
    other: NaN where nothing was measured, infinity where something was not finite; [1] float32: the
    last vector of each row.
    """

    v: int
    type: Literal["vectors"]
    seq: int
    layout: list[list[tuple[int, int]]]
    """`Layout` of `wire`."""
    quantity: str
    rows: list[VectorRow]
    columns: int
    first_step: int
    last_step: int
    keys: list[str]
    """What each element is called in the name of its series; empty where rows differ in length, and
    elements are called by their numbers, or where an element is no series."""
    at: list[float | None]
    """Coordinates of the elements along the axis, as far as there are any."""
    low_edges: list[float | None]
    """Of bins; empty for what is no histogram."""
    high_edges: list[float | None]
    n_lanes: int
    """Last elements of each row that count what is not finite."""
    has_series: bool
    """Whether an element can be drawn as a line."""
    glyph: Glyph
    low: float | None
    high: float | None
    log: bool
    colours: ColourMap
