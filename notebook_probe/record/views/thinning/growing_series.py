"""One series in memory, appended as it grows, with its extremes at coarser grains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.source import Floats, Steps
from notebook_probe.record.views.growing import Growing
from notebook_probe.record.views.thinning.minmax import ends_of_blocks

__all__ = ["GrowingSeries"]

FACTOR = 4
"""Rows per block of the first grain, and blocks of one grain per block of the next."""


class GrowingSeries:
    """Measured rows of a series, or values computed from each of them.

    ``extremes`` picks rows out of any range without looking at all of them: for every 4, 16,
    64, … rows the place of the smallest and of the largest finite value is stored.
    """

    def __init__(self) -> None:
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

    def append(self, steps: Steps, values: Floats) -> None:
        """Add rows behind those there are."""
        self._nonfinite.append(len(self._values) + np.flatnonzero(~np.isfinite(values)))
        self._steps.append(steps)
        self._values.append(values)
        self._coarsen()

    def rows(self, window: tuple[float, float] | None) -> tuple[int, int]:
        """Return rows ``first:stop`` with steps in the window, and one more on either side."""
        if window is None:
            return 0, len(self.steps)
        first = int(np.searchsorted(self.steps, window[0], "left"))
        stop = int(np.searchsorted(self.steps, window[1], "right"))
        return max(first - 1, 0), min(stop + 1, len(self.steps))

    def extremes(self, first: int, stop: int, wanted: int) -> npt.NDArray[np.int64]:
        """Return at least about ``wanted`` rows of ``first:stop``, with all extremes, sorted.

        Only complete blocks are taken as a whole; the ends are finer.
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
            # From the two rows that the grain below has kept of each block, not from all values.
            ends.append(self._ends((places if below is None else below[places]), per_block))
            below, per_block, grain = ends.values, 2 * FACTOR, grain + 1

    def _ends(self, rows: npt.NDArray[np.int64], per_block: int) -> npt.NDArray[np.int64]:
        """Return the two rows with the smallest and largest value of every ``per_block`` rows."""
        blocks = rows.reshape(-1, per_block)
        return np.take_along_axis(blocks, ends_of_blocks(self.values[blocks]), axis=1).reshape(-1)
