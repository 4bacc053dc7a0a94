"""From the rows of a column to two points per pixel: the extremes stay, and so do the gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from notebook_probe.explorer.draw.column import Column
from notebook_probe.record.format.source import Floats, Steps
from notebook_probe.record.format.thin import minmax

__all__ = [
    "LOG_PARTS",
    "MOST_MARKS",
    "NOTHING",
    "PixelAxis",
    "PixelPoints",
    "joined",
    "spread",
    "thinned",
]

MOST_MARKS = 100
LOG_PARTS = 12
"""Parts of a logarithmic axis whose rows are picked on their own: the early ones are wide."""

Places = npt.NDArray[np.int64]
Positions = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PixelAxis:
    """What the lines are drawn over: positions of steps, read on a linear or a log scale."""

    position: Callable[[Steps], Positions]
    log: bool


@dataclass(frozen=True, slots=True)
class PixelPoints:
    """What is drawn of one series; ``y`` is NaN where a value is not finite."""

    x: Positions
    y: Floats
    marks: Positions
    n_rows: int = 0
    n_nonfinite: int = 0
    first_step: int = 0
    last_step: int = 0
    last_value: float = np.nan


NOTHING = PixelPoints(np.empty(0), np.empty(0, np.float32), np.empty(0))


def thinned(
    column: Column, window: tuple[float, float] | None, axis: PixelAxis, n_points: int
) -> PixelPoints:
    """About ``n_points`` points of a column, the smallest and largest of every two pixels."""
    first, stop = column.rows(window)
    if first >= stop:
        return NOTHING
    nonfinite = _between(column.nonfinite, first, stop)
    marks = spread(nonfinite, MOST_MARKS)
    rows = _rows(column, first, stop, axis, n_points)
    if len(marks):
        rows = np.union1d(rows, marks)  # a point that is not finite breaks the line
    values = column.values[rows]
    last_value = float(column.values[stop - 1])
    return PixelPoints(
        x=axis.position(column.steps[rows]),
        y=np.where(np.isfinite(values), values, np.float32(np.nan)),
        marks=axis.position(column.steps[marks]),
        n_rows=stop - first,
        n_nonfinite=len(nonfinite),
        first_step=int(column.steps[first]),
        last_step=int(column.steps[stop - 1]),
        last_value=last_value,
    )


def joined(parts: list[PixelPoints]) -> PixelPoints:
    """One series out of what several streams hold of it."""
    parts = [part for part in parts if part.n_rows]
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    x = np.concatenate([part.x for part in parts])
    order = np.argsort(x, kind="stable")
    newest = max(parts, key=lambda part: part.last_step)
    return PixelPoints(
        x=x[order],
        y=np.concatenate([part.y for part in parts])[order],
        marks=np.sort(np.concatenate([part.marks for part in parts])),
        n_rows=sum(part.n_rows for part in parts),
        n_nonfinite=sum(part.n_nonfinite for part in parts),
        first_step=min(part.first_step for part in parts),
        last_step=newest.last_step,
        last_value=newest.last_value,
    )


def _rows(column: Column, first: int, stop: int, axis: PixelAxis, n_points: int) -> Places:
    """Thinned by steps, whatever the axis shows: wall times need not grow from row to row."""
    if stop - first <= n_points:
        return np.arange(first, stop, dtype=np.int64)
    rows = _candidates(column, first, stop, axis, n_points)
    steps = column.steps[rows]
    places = np.log1p(steps) if axis.log else steps.astype(np.float64)
    kept = minmax(places, column.values[rows], n_points)
    return rows[np.searchsorted(places, kept.x)]


def _candidates(column: Column, first: int, stop: int, axis: PixelAxis, n_points: int) -> Places:
    """Far fewer rows than there are, enough to fill every pixel, and both ends; increasing."""
    if not axis.log:
        return _with_ends(column.extremes(first, stop, n_points), first, stop - 1)
    low, high = np.log1p(column.steps[[first, stop - 1]])
    borders = np.expm1(np.linspace(low, high, LOG_PARTS + 1)[1:-1])
    cuts = [first, *np.searchsorted(column.steps[first:stop], borders) + first, stop]
    wanted = -(-n_points // LOG_PARTS)
    parts = [column.extremes(a, b, wanted) for a, b in pairwise(cuts)]
    return _with_ends(np.concatenate(parts), first, stop - 1)


def _with_ends(rows: Places, first: int, last: int) -> Places:
    """Distinct rows; a block whose values are all equal gives the same row twice."""
    rows = np.concatenate([[first], rows, [last]])
    return rows[np.diff(rows, prepend=-1) > 0]


def _between(sorted_rows: Places, first: int, stop: int) -> Places:
    low, high = np.searchsorted(sorted_rows, [first, stop])
    return sorted_rows[low:high]


def spread(rows: Places, most: int) -> Places:
    """At most ``most`` of the rows, evenly over them, both ends kept."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
