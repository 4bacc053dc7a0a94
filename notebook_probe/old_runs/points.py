"""Collection of a run's numbers while a reader reads its files."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from notebook_probe.old_runs.allowance import Allowance, SpentError
from notebook_probe.old_runs.histograms import HistogramPoints
from notebook_probe.old_runs.images import ImagePoints
from notebook_probe.old_runs.run import OldSeries
from notebook_probe.record.format.schema import LONGEST_NAME, RESERVED

__all__ = ["Points", "number_of"]

LARGEST_STEP = 2**62
LATEST_MS = 2**53
NOT_FINITE = {
    "nan": float("nan"),
    "inf": float("inf"),
    "infinity": float("inf"),
    "-inf": float("-inf"),
    "-infinity": float("-inf"),
}
"""Texts that tools write for numbers that JSON lacks, in lower case."""


def number_of(value: Any) -> float | None:
    """Return a logged value as a number; None for anything else.

    Examples
    --------
    >>> number_of(True), number_of("NaN"), number_of("text"), number_of([1])
    (1.0, nan, None, None)
    """
    if isinstance(value, str):
        return NOT_FINITE.get(value.lower())
    if not isinstance(value, bool | int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


class Points:
    """Numbers by name, in the order in which they are read; of a step the last one counts.

    Parameters
    ----------
    allowance : Allowance
    is_growing : bool
        True while the files are written, so that their ends may be cut anywhere.
    """

    def __init__(self, allowance: Allowance, is_growing: bool = False) -> None:
        self.allowance, self.is_growing = allowance, is_growing
        self.remarks: list[str] = []
        self.histograms = HistogramPoints(allowance)
        self.images = ImagePoints()
        self._steps: dict[str, array[int]] = {}
        self._times: dict[str, array[int]] = {}
        self._values: dict[str, array[float]] = {}
        self._n_odd = 0

    def add(self, name: str, step: int, time_ms: float, value: float) -> None:
        """Add one number.

        Raises
        ------
        SpentError
            There is too much of it.
        """
        if not 0 <= step < LARGEST_STEP or not name.isprintable() or not name:
            self._n_odd += 1
            return
        self.allowance.take_values()
        if name not in self._steps:
            self.allowance.check_names(len(self._steps) + 1)
            self._steps[name], self._times[name] = array("q"), array("q")
            self._values[name] = array("d")
        self._steps[name].append(step)
        self._times[name].append(int(time_ms) if 0 < time_ms < LATEST_MS else 0)
        self._values[name].append(value)

    def add_all(self, row: Mapping[str, Any], step: int, time_ms: float) -> None:
        """Add the numbers of a row, also of dicts in it, with a slash between the names."""
        for name, value in row.items():
            if isinstance(value, Mapping):
                self.add_all({f"{name}/{key}": one for key, one in value.items()}, step, time_ms)
            elif (number := number_of(value)) is not None:
                self.add(name, step, time_ms, number)

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Stop reading where the allowance ends, with a remark on it."""
        try:
            yield
        except SpentError as error:
            self.remarks.append(f"{what} is read {self.up_to}: {error}")

    @property
    def up_to(self) -> str:
        """The last step that was read, as text."""
        last = max((max(steps) for steps in self._steps.values() if steps), default=None)
        return "up to its start" if last is None else f"up to step {last}"

    def series(self) -> tuple[OldSeries, ...]:
        """Return the series, with growing steps."""
        if self._n_odd:
            self.remarks.append(
                f"{self._n_odd} numbers are left out: their step is negative or too large, or "
                "their name cannot be printed"
            )
            self._n_odd = 0
        names = _distinct(self._steps)
        return tuple(self._ordered(name, short) for name, short in names.items())

    def _ordered(self, name: str, short: str) -> OldSeries:
        steps = np.frombuffer(self._steps[name], np.int64)
        times = np.frombuffer(self._times[name], np.int64)
        values = np.frombuffer(self._values[name], np.float64)
        if len(steps) > 1 and not (np.diff(steps) > 0).all():
            # np.unique finds the first of equal ones: in reversed order that is the last.
            steps, last = np.unique(steps[::-1], return_index=True)
            times, values = times[::-1][last], values[::-1][last]
        return OldSeries(short, steps.copy(), times.copy(), values.copy())


def _distinct(names: Mapping[str, object]) -> dict[str, str]:
    """Return each name in a form that a record can store; equal ones get a number."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        valid = f"logged_{name}" if name in RESERVED else name
        short, n = valid[:LONGEST_NAME], 1
        while short in taken:
            n += 1
            short = f"{valid[: LONGEST_NAME - 8]}_{n}"
        found[name] = short
        taken.add(short)
    return found
