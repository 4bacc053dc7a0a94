"""Messages that draw something, with their numbers in binary buffers: lines, heat map, views.

Bulk numbers are little-endian. Other messages are in `wire`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from notebook_probe.compare.line_axes import LineAxisName
from notebook_probe.record.views.thinning.colour_scale import ColourMap

__all__ = [
    "ArrayPlace",
    "DrawnFrame",
    "Frame",
    "HeatFrame",
    "Layout",
    "LineSeries",
    "LinesFrame",
]

Frame: TypeAlias = tuple[Mapping[str, Any], list[memoryview]]
"""A message that draws something (its ``seq`` is stamped when it is sent) and its buffers."""

Layout: TypeAlias = list[list[tuple[int, int]]]
"""Row groups of each buffer of a frame, one after the other: number of rows, bytes per row.

Bytes at the front of all rows of a group, and fields, may be left out if they have not changed
since the last frame. Such a frame has ``base``, the ``seq`` of that frame; ``kept``, for each group
the bytes of each row that are not sent; and one buffer with the rest of all rows, in their order. A
view that has another frame sends ``hello`` again.
"""


class LineSeries(TypedDict):
    """Place of a series in the buffer: n x values, n y values, then those of its average."""

    module: str
    quantity: str
    chart: int
    """Number of its chart, from 0 for the upper one; those of one chart share a value axis."""
    log_y: bool
    """True if that axis is logarithmic."""
    colour: int
    """Permanent index of the series: Okabe-Ito color = index % 7, dash = index // 7."""
    n: int
    n_average: int
    """Points of its average, computed from every recorded value and thinned separately."""
    offset: int
    """Offset in the buffer, in float32 elements."""
    n_rows: int
    """Recorded points in the window before thinning; n == n_rows means nothing was thinned."""
    first_step: int
    last_step: int
    last_value: float | None
    n_nonfinite: int
    weight: float
    """Weight of its average: as chosen, at most 1 - 10 / n for n recorded values."""
    marks: list[float]
    """x (relative to x0) of recorded values that are NaN or infinite."""
    problem: NotRequired[str]
    """Reason why a formula has no value."""


class LinesFrame(TypedDict):
    """The line view. x is relative to ``x0`` because float32 is exact only below 2**24."""

    v: int
    type: Literal["lines"]
    seq: int
    layout: Layout
    x0: float
    x_axis: LineAxisName
    """Axis of x: the chosen one, or steps if the run does not have that one."""
    knots: list[tuple[float, float]]
    """(step, x) between which and beyond which x grows evenly; empty if only rows have an x."""
    refused: dict[str, str]
    """Axis -> reason why the run does not have it."""
    smooth: float
    """Weight of the averages, as chosen."""
    log_y: bool
    """Log scale of the values, unless the selection says otherwise."""
    averaged: float
    """Share of the recorded values that are in the averages; below 1 there is more to come."""
    series: list[LineSeries]
    events: list[tuple[float, str, str]]
    """(x relative to x0, kind, text) of an attached probe, a pause, and so on; alerts excluded."""
    # buffers[0]: float32


class HeatFrame(TypedDict):
    """The heat map: block reductions of rows x columns.

    buffers: [0] float32 mean (row, column), row-major; [1] uint8 state (row, column): 0 value, 1
    not measured, 2 contains NaN or infinity, and 4 more if it was measured before the column, 8
    more where the series had ended, 16 more where it had no value when due; [2] float32 maximum of
    each block; [3] unsigned integers (row, column), of the least width that holds a column's steps:
    last measured step of the cell from the column's first, 0 where nothing was measured in it;
    empty if each column is one step.
    """

    v: int
    type: Literal["heat"]
    seq: int
    layout: Layout
    quantity: str
    rows: list[str]
    columns: int
    first_step: int
    last_step: int
    """Column c covers steps first + c*(last+1-first)/columns up to the next column's."""
    end_step: int
    """Last step that the run has in the last column."""
    before: list[int]
    """Step of the value that each row has before the first column, -1 for none; mostly empty."""
    low: float | None
    high: float | None
    """Ends of the colors; None without a finite value (without a positive one when ``log``)."""
    lowest: float | None
    highest: float | None
    """Largest finite value; values beyond the color scale have the color of its end."""
    log: bool
    """Log scale of the colors, unless the selection says otherwise."""
    colours: ColourMap


class ArrayPlace(TypedDict):
    """Path of an array in ``data``; its numbers are in the buffer of the same index."""

    path: list[str | int]
    dtype: str
    shape: list[int]


class DrawnFrame(TypedDict):
    """Frame of a registered view: a PNG in buffers[0], data for its module, or nothing."""

    v: int
    type: Literal["drawn"]
    seq: int
    view: str
    form: Literal["image", "data", "nothing"]
    width: NotRequired[int]
    """Width of the image, in CSS pixels."""
    height: NotRequired[int]
    data: NotRequired[Any]
    arrays: NotRequired[list[ArrayPlace]]
