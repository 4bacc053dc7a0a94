"""Rows of a source that are read once, however often it is looked at while it grows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import ROOT, Source, Steps, StreamView
from notebook_probe.record.views.branches.branches import read_name
from notebook_probe.record.views.growing import Growing
from notebook_probe.record.views.thinning.zoom import has_series

__all__ = ["GrowingRows", "logged", "times"]

Doubles = npt.NDArray[np.float64]
Read = Callable[[StreamView, int, int], tuple[Steps, Doubles]]


class GrowingRows:
    """One number for each row of some streams, in the order of steps.

    Parameters
    ----------
    is_held : callable
        Returns whether a stream has such rows.
    read : callable
        Steps and numbers of the rows ``start:stop`` of a stream.
    """

    def __init__(self, is_held: Callable[[StreamView], bool], read: Read) -> None:
        self._is_held, self._read = is_held, read
        self._streams: dict[str, _StreamNumbers] = {}

    def read_new(self, source: Source) -> tuple[Steps, Doubles]:
        """All rows, of which those are read that have come since the last call."""
        for name, stream in source.streams.items():
            if self._is_held(stream):
                seen = self._streams.get(name)
                if seen is None or seen.version != stream.version:
                    seen = self._streams[name] = _StreamNumbers(stream.version)
                seen.take(stream, self._read)
        every = [one.rows for one in self._streams.values()]
        if len(every) == 1:
            return every[0]
        steps = np.concatenate([np.empty(0, np.int64), *(steps for steps, _ in every)])
        numbers = np.concatenate([np.empty(0), *(numbers for _, numbers in every)])
        order = np.argsort(steps, kind="stable")
        return steps[order], numbers[order]


class _StreamNumbers:
    """Numbers of one stream so far."""

    def __init__(self, version: tuple[object, ...]) -> None:
        self.version = version
        self._steps, self._numbers = Growing(np.int64), Growing(np.float64)
        self._n_rows = 0

    @property
    def rows(self) -> tuple[Steps, Doubles]:
        return self._steps.values, self._numbers.values

    def take(self, stream: StreamView, read: Read) -> None:
        n_rows = stream.n_rows
        if n_rows > self._n_rows:
            steps, numbers = read(stream, self._n_rows, n_rows)
            self._steps.append(steps)
            self._numbers.append(numbers)
            self._n_rows = n_rows


def times() -> GrowingRows:
    """Milliseconds since 1970, of the rows that were written as the training went."""

    def read(stream: StreamView, start: int, stop: int) -> tuple[Steps, Doubles]:
        return stream.steps(start, stop), stream.times(start, stop).astype(np.float64)

    return GrowingRows(lambda stream: read_name(stream.name).order is None, read)


def logged(quantity: str, module: str = ROOT) -> GrowingRows:
    """Return the measured values of one series."""

    def read(stream: StreamView, start: int, stop: int) -> tuple[Steps, Doubles]:
        values = stream.values(quantity, start, stop, [module])[:, 0]
        known = measured(values)
        return stream.steps(start, stop)[known], values[known].astype(np.float64)

    return GrowingRows(lambda stream: has_series(stream, module, quantity), read)
