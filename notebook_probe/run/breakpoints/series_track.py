"""One series under one condition: a stretch of rows is reported once, when long enough."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from notebook_probe.run.breakpoints.comparison import CROSSES
from notebook_probe.run.breakpoints.conditions import OnSeries

__all__ = ["SeriesTrack", "would_pause"]


@dataclass(slots=True)
class _Row:
    """State after a row."""

    value: float = math.nan
    n_held: int = 0


class SeriesTrack:
    """Sees the rows of a series one by one.

    Parameters
    ----------
    condition : OnSeries
    """

    def __init__(self, condition: OnSeries) -> None:
        self._condition = condition
        self._step, self._before, self._last = -1, _Row(), _Row()

    def see(self, step: int, value: float) -> bool:
        """Add a row; return True if with it the condition has held for long enough.

        A second row of the same step, with more values, replaces the first.
        """
        if step != self._step:
            self._step, self._before = step, self._last
        before = self._before
        holds = self._condition.comparison.holds(value, before.value)
        n_before = 0 if self._condition.comparison.sign == CROSSES else before.n_held
        self._last = _Row(value, n_before + 1 if holds else 0)
        # Equal, not at least: a stretch is reported once.
        return self._last.n_held == self._condition.for_rows


def would_pause(condition: OnSeries, rows: Iterable[tuple[int, float]]) -> list[int]:
    """Return the steps at which a condition would have paused training.

    Examples
    --------
    >>> from notebook_probe.run.breakpoints.comparison import as_comparison
    >>> condition = OnSeries("fc", "grad_norm", as_comparison("> 1"))
    >>> would_pause(condition, enumerate([0.0, 2.0, 3.0, 0.5, 4.0]))
    [1, 4]
    """
    track = SeriesTrack(condition)
    return [step for step, value in rows if track.see(step, value)]
