"""Steps at which modules took turns: a row has some of them, others are known from before."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.source import Event

__all__ = ["TurnsTaken", "filled_by_turns"]

Mask = npt.NDArray[np.bool_]


class TurnsTaken:
    """The steps from which on modules took turns, by series; read from a record's events.

    Parameters
    ----------
    events : iterable of Event
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._since: list[int] = []
        self._series: list[Mapping[str, int]] = []
        for event in events:
            if event.kind in ("budget", "resume"):
                self._since.append(event.step + 1)
                self._series.append(_series_of(event))

    def n(self, series: str, steps: npt.NDArray[np.number]) -> npt.NDArray[np.int64]:
        """Return in how many turns the modules were measured at some steps; 1 for all at once."""
        if not any(series in one for one in self._series):
            return np.ones(len(steps), np.int64)
        found = [bisect_right(self._since, float(step)) - 1 for step in steps]
        return np.array([self._series[i].get(series, 1) if i >= 0 else 1 for i in found], np.int64)

    def mask(self, series: str, steps: npt.NDArray[np.number]) -> Mask:
        """Return the mask of the steps at which modules took turns in a series."""
        return self.n(series, steps) > 1


def _series_of(event: Event) -> Mapping[str, int]:
    """Return the number of turns of each series; none if the event is not understood."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        detail = json.loads(event.detail or "{}")
        n_turns = int(detail.get("turns", 1))
        if n_turns > 1:
            return {str(name): min(n_turns, int(every)) for name, every in detail["every"].items()}
    return {}


def filled_by_turns(
    values: npt.NDArray[np.float64], n_turns: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return values (row, module) with those of modules whose turn it was a few rows before.

    Examples
    --------
    >>> table = np.array([[1.0, np.nan], [np.nan, 2.0], [np.nan, np.nan]])
    >>> filled_by_turns(table, np.array([2, 2, 2])).tolist()
    [[1.0, nan], [1.0, 2.0], [nan, 2.0]]
    """
    rows = np.arange(len(values))[:, None]
    # A negative row marks that there was no value yet.
    last = np.maximum.accumulate(np.where(np.isnan(values), -len(values), rows), axis=0)
    is_recent = (last >= 0) & (rows - last < n_turns[:, None])
    filled: npt.NDArray[np.float64] = np.where(
        is_recent, np.take_along_axis(values, np.maximum(last, 0), axis=0), values
    )
    return filled
