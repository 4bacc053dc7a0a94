"""A column's rows, thinned: of few candidates those with the extremes of each part of the axis."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from notebook_probe.record.views.thinning.growing_series import GrowingSeries
from notebook_probe.record.views.thinning.log_axis import points_per_part, steps_between_parts
from notebook_probe.record.views.thinning.minmax import minmax

__all__ = ["thin_column"]

Rows = npt.NDArray[np.int64]


def thin_column(
    column: GrowingSeries, first: int, stop: int, n_points: int, *, log: bool = False
) -> Rows:
    """Return about ``n_points`` of the rows ``first:stop``; all finite if any is left out.

    Rows are thinned by steps on every axis: wall times need not grow from row to row. On a
    logarithmic axis of steps (``log``) the early ones take more width.
    """
    if stop - first <= n_points:
        return np.arange(first, stop, dtype=np.int64)
    rows = _candidates(column, first, stop, n_points, log)
    steps = column.steps[rows]
    # log1p, as steps begin at 0.
    places = np.log1p(steps) if log else steps.astype(np.float64)
    thinned = minmax(places, column.values[rows], n_points)
    return rows[np.searchsorted(places, thinned.x)]


def _candidates(column: GrowingSeries, first: int, stop: int, n_points: int, log: bool) -> Rows:
    """Far fewer rows than there are, enough to fill every pixel, and both ends; increasing."""
    # Linear grains are too coarse for the first steps of a logarithmic axis, so it is cut first.
    if not log:
        return _with_ends(column.extremes(first, stop, n_points), first, stop - 1)
    borders = steps_between_parts(column.steps[[first, stop - 1]])
    cuts = [first, *np.searchsorted(column.steps[first:stop], borders) + first, stop]
    wanted = points_per_part(n_points)
    parts = [column.extremes(a, b, wanted) for a, b in pairwise(cuts)]
    return _with_ends(np.concatenate(parts), first, stop - 1)


def _with_ends(rows: Rows, first: int, last: int) -> Rows:
    """Distinct rows; a block whose values are all equal gives the same row twice."""
    rows = np.concatenate([[first], rows, [last]])
    return rows[np.diff(rows, prepend=-1) > 0]
