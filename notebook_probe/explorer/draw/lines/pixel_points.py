"""Points of a line: two per pixel, with extremes and gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.source import Floats, Steps
from notebook_probe.record.views.thinning.growing_series import GrowingSeries
from notebook_probe.record.views.thinning.in_memory import thin_column
from notebook_probe.record.views.thinning.minmax import spread

__all__ = [
    "MOST_MARKS",
    "NOTHING",
    "PixelAxis",
    "PixelPoints",
    "joined",
    "points_of",
]

MOST_MARKS = 100

Rows = npt.NDArray[np.int64]
Positions = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PixelAxis:
    """Horizontal axis of the lines: positions of steps, on a linear or a log scale."""

    position: Callable[[Steps], Positions]
    log: bool


@dataclass(frozen=True, slots=True)
class PixelPoints:
    """Points of one series; ``y`` is NaN where a value is not finite."""

    x: Positions
    y: Floats
    marks: Positions
    n_rows: int = 0
    n_nonfinite: int = 0
    first_step: int = 0
    last_step: int = 0
    last_value: float = np.nan


NOTHING = PixelPoints(np.empty(0), np.empty(0, np.float32), np.empty(0))


def points_of(
    column: GrowingSeries, window: tuple[float, float] | None, axis: PixelAxis, n_points: int
) -> PixelPoints:
    """Return about ``n_points`` points of a column: smallest and largest of every two pixels."""
    first, stop = column.rows(window)
    if first >= stop:
        return NOTHING
    nonfinite = _between(column.nonfinite, first, stop)
    marks = spread(nonfinite, MOST_MARKS)
    rows = thin_column(column, first, stop, n_points, log=axis.log)
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
    """Join the points that several streams have of a series."""
    parts = [part for part in parts if part.n_rows]
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    x = np.concatenate([part.x for part in parts])
    order = np.argsort(x, kind="stable")
    # A series may be in several streams after its schedule was changed; the newest has the last
    # value.
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


def _between(sorted_rows: Rows, first: int, stop: int) -> Rows:
    low, high = np.searchsorted(sorted_rows, [first, stop])
    return sorted_rows[low:high]
