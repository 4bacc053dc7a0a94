"""One series of one stream in memory, appended as it grows, with its extremes at coarser grains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Floats, Steps, StreamView
from notebook_probe.record.views.growing import Growing

__all__ = ["Column"]

FACTOR = 4
"""Rows per block of the first grain, and blocks of one grain per block of the next."""


class Column:
    """The measured rows of one module and quantity in one stream.

    ``extremes`` picks rows out of any range without looking at all of them: for every 4, 16,
    64, … rows the place of the smallest and of the largest finite value is kept.
    """

    def __init__(self, module: str, quantity: str) -> None:
        self._module, self._quantity = module, quantity
        self._n_seen = 0
        self._steps = Growing(np.int64)
        self._values = Growing(np.float32)
        self._nonfinite = Growing(np.int64)
        self._grains: list[Growing[np.int64]] = []

    @property
    def steps(self) -> Steps:
        return self._steps.values

    @property
    def values(self) -> Floats:
        return self._values.values

    @property
    def nonfinite(self) -> Steps:
        """Rows whose value is NaN or infinite."""
        return self._nonfinite.values

    def read_new(self, stream: StreamView) -> None:
        """Append what the stream has gained since the last call."""
        start, stop = self._n_seen, stream.n_rows
        if stop <= start:
            return
        values = stream.values(self._quantity, start, stop, [self._module])[:, 0]
        is_measured = measured(values)
        values, n_before = values[is_measured], len(self._values)
        self._nonfinite.append(n_before + np.flatnonzero(~np.isfinite(values)))
        self._steps.append(stream.steps(start, stop)[is_measured])
        self._values.append(values)
        self._n_seen = stop
        self._coarsen()

    def rows(self, window: tuple[float, float] | None) -> tuple[int, int]:
        """Rows ``first:stop`` whose steps lie in the window, and the next one on either side."""
        if window is None:
            return 0, len(self.steps)
        first = int(np.searchsorted(self.steps, window[0], "left"))
        stop = int(np.searchsorted(self.steps, window[1], "right"))
        return max(first - 1, 0), min(stop + 1, len(self.steps))

    def extremes(self, first: int, stop: int, wanted: int) -> npt.NDArray[np.int64]:
        """At least about ``wanted`` rows of ``first:stop``, all its extremes among them, sorted.

        Only blocks that are complete are taken as a whole; the ragged ends come finer.
        """
        grain = 0
        while grain < len(self._grains) and stop - first >= wanted * FACTOR ** (grain + 1):
            grain += 1
        return np.concatenate([np.empty(0, np.int64), *self._pieces(first, stop, grain)])

    def _pieces(self, first: int, stop: int, grain: int) -> list[npt.NDArray[np.int64]]:
        if first >= stop:
            return []
        if grain == 0:
            return [np.arange(first, stop, dtype=np.int64)]
        size = FACTOR**grain
        ends = self._grains[grain - 1].values
        inner, outer = -(-first // size), min(stop // size, len(ends) // 2)
        if inner >= outer:
            return self._pieces(first, stop, grain - 1)
        return [
            *self._pieces(first, inner * size, grain - 1),
            ends[2 * inner : 2 * outer],
            *self._pieces(outer * size, stop, grain - 1),
        ]

    def _coarsen(self) -> None:
        """Complete the blocks of every grain that have all their rows now."""
        grain = 0
        below: npt.NDArray[np.int64] | None = None
        per_block = FACTOR
        while len(self._values) >= FACTOR ** (grain + 1):
            if grain == len(self._grains):
                self._grains.append(Growing(np.int64))
            ends = self._grains[grain]
            done, complete = len(ends) // 2, len(self._values) // FACTOR ** (grain + 1)
            places = np.arange(done * per_block, complete * per_block, dtype=np.int64)
            ends.append(self._ends((places if below is None else below[places]), per_block))
            below, per_block, grain = ends.values, 2 * FACTOR, grain + 1

    def _ends(self, rows: npt.NDArray[np.int64], per_block: int) -> npt.NDArray[np.int64]:
        """Of every ``per_block`` rows the two with the smallest and the largest finite value."""
        blocks = rows.reshape(-1, per_block)
        values = self.values[blocks]
        finite = np.isfinite(values)
        smallest = np.where(finite, values, np.inf).argmin(axis=1)
        largest = np.where(finite, values, -np.inf).argmax(axis=1)
        places = np.sort(np.stack([smallest, largest], axis=1), axis=1)
        return np.take_along_axis(blocks, places, axis=1).reshape(-1)
