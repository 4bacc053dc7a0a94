"""Runs grouped by a column: of each group the mean of its losses, how they spread, and how many."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from notebook_probe.compare.band import band_of
from notebook_probe.compare.tables import Doubles
from notebook_probe.errors import ProbeError
from notebook_probe.explorer.runs_table.reading import Records
from notebook_probe.json_numbers import json_number
from notebook_probe.lineage.order import places, told
from notebook_probe.lineage.progress import scalar_of

__all__ = ["GroupsMessage", "RunGroupLine", "RunGroups"]

N_PLACES = 120
"""Positions along the steps at which a group is averaged."""
MOST_GROUPS = 12
PART_S = 0.3
"""Seconds of reading between two messages."""

Line = tuple[Doubles, Doubles]


class RunGroupLine(TypedDict):
    """Lines of one group of runs, one value for each place; None without a finite value."""

    text: str
    """The value that its runs have in common."""
    n: int
    """Number of runs with a loss."""
    x: list[float | None]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]
    last: float | None
    """Mean of the last values."""
    std: float | None
    """Standard deviation of the last values, with ``n - 1``; None for fewer than two."""


class GroupsMessage(TypedDict):
    """Groups of the runs that are read so far."""

    by: str
    scalar: str
    n_read: int
    n_runs: int
    groups: list[RunGroupLine]
    problem: str


class RunGroups:
    """Runs grouped by a column, read a few at a time.

    Parameters
    ----------
    records : Records
    by : str
        The column; runs without a value in it are in no group.
    rows : sequence of mapping
        Rows of the runs.
    """

    def __init__(self, records: Records, by: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._records, self._by = records, by
        self._left = [row for row in rows if row.get(by) is not None]
        self._n_runs = len(self._left)
        self._left.reverse()
        names = {told(row[by]) for row in self._left}
        self._problem = (
            f"{len(names)} values of {by}; at most {MOST_GROUPS} can be distinguished"
            if len(names) > MOST_GROUPS
            else ""
        )
        if self._problem:
            self._left = []
        self._lines: dict[str, list[Line]] = {}
        self._keys = {told(row[by]): row[by] for row in self._left}
        self._scalars: dict[str, None] = {}

    @property
    def is_whole(self) -> bool:
        """True once every run is read."""
        return not self._left

    def read_some(self) -> None:
        """Read runs for a fraction of a second."""
        until_s = time.monotonic() + PART_S
        while self._left and time.monotonic() < until_s:
            row = self._left.pop()
            line = self._line_of(str(row.get("run") or ""))
            if line is not None:
                self._lines.setdefault(told(row[self._by]), []).append(line)

    def _line_of(self, place: str) -> Line | None:
        """Return the loss of a record; None if it has none, or cannot be read."""
        try:
            record = self._records.record(place)
            scalar = scalar_of(record)
            found = record.thinned("", scalar, n_points=N_PLACES) if scalar else None
        except (ProbeError, OSError, ValueError):
            self._records.forget(place)
            return None
        if found is None or not len(found.x):
            return None
        self._scalars[scalar] = None
        return np.asarray(found.x, np.float64), np.asarray(found.y, np.float64)

    def message(self) -> GroupsMessage:
        """Return the groups that have been read, ordered by their value."""
        named = [*self._lines]
        names = [named[at] for at in places([self._keys[name] for name in named])]
        return {
            "by": self._by,
            "scalar": ", ".join(self._scalars),
            "n_read": self._n_runs - len(self._left),
            "n_runs": self._n_runs,
            "groups": [group_line(name, self._lines[name]) for name in names],
            "problem": self._problem,
        }


def group_line(text: str, lines: Sequence[Line]) -> RunGroupLine:
    """Return the mean of some lines at even places, with their extremes.

    Examples
    --------
    >>> steps = np.arange(3.0)
    >>> group = group_line("0.1", [(steps, np.full(3, 2.0)), (steps, np.full(3, 4.0))])
    >>> group["n"], group["mean"][0], group["low"][0], group["high"][0], group["last"]
    (2, 3.0, 2.0, 4.0, 3.0)
    """
    ends = min(x[0] for x, _ in lines), max(x[-1] for x, _ in lines)
    steps = np.linspace(*ends, N_PLACES)
    at = [np.interp(steps, x, y, left=np.nan, right=np.nan) for x, y in lines]
    band = band_of(steps, at)
    last = np.array([y[-1] for _, y in lines])
    std = float(last.std(ddof=1)) if len(last) > 1 else None
    return {
        "text": text,
        "n": len(lines),
        "x": [float(one) for one in steps],
        "mean": [json_number(one) for one in band.mean],
        "low": [json_number(one) for one in band.low],
        "high": [json_number(one) for one in band.high],
        "last": json_number(float(last.mean())),
        "std": None if std is None else json_number(std),
    }
