"""A heat map of a run of any length: block reductions on a grid of steps that coarsens as it grows.

Each increment is reduced once. If there are too many blocks, adjacent ones are merged in pairs, so
memory and the cost of a picture depend on its width, not on the length of the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Floats, Steps

__all__ = ["BlockThinner", "Blocks"]

SLAB_ROWS = 8192
"""Rows reduced at a time: bounds the memory when a whole run is fed at once."""

Counts = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Reductions over ``size`` steps each; arrays are (block, column)."""

    size: int
    """Steps per block, a power of two."""
    first_steps: Steps
    """(block,) multiples of ``size``, increasing; blocks in which no row fell are left out."""
    mean: Floats
    """Mean of the finite values; NaN where there is none."""
    maximum: Floats
    """Greatest finite value; NaN where there is none."""
    n_finite: Counts
    n_nonfinite: Counts
    """Measured values that are NaN or infinite; cells not measured are in neither count."""

    def coarser(self, size: int) -> Blocks:
        """Return these blocks merged to blocks of ``size`` steps."""
        numbers, starts = np.unique(self.first_steps // size, return_index=True)
        # The mean is NaN where nothing is finite, and NaN times 0 would stay NaN.
        sums = np.where(self.n_finite, self.mean.astype(np.float64), 0.0) * self.n_finite
        n_finite = np.add.reduceat(self.n_finite, starts)
        with np.errstate(invalid="ignore"):
            mean = (np.add.reduceat(sums, starts) / n_finite).astype(np.float32)
        return Blocks(
            size=size,
            first_steps=numbers * size,
            mean=mean,
            # fmax ignores NaN; `maximum` would spread it over the merged block.
            maximum=np.fmax.reduceat(self.maximum, starts),
            n_finite=n_finite,
            n_nonfinite=np.add.reduceat(self.n_nonfinite, starts),
        )


class BlockThinner:
    """Online reduction of rows to at most ``2 * max_blocks`` blocks of equal numbers of steps.

    Parameters
    ----------
    max_blocks : int
        Wanted resolution, such as the width of the picture in pixels; there are more than half
        as many blocks as soon as there are that many rows without gaps.

    Examples
    --------
    >>> thinner = BlockThinner(max_blocks=2)
    >>> thinner.feed(np.arange(8), np.arange(8, dtype=np.float32)[:, None])
    >>> blocks = thinner.blocks()
    >>> blocks.size, blocks.first_steps.tolist(), blocks.mean[:, 0].tolist()
    (2, [0, 2, 4, 6], [0.5, 2.5, 4.5, 6.5])
    """

    def __init__(self, max_blocks: int) -> None:
        if max_blocks < 1:
            raise ValueError(f"max_blocks={max_blocks}; at least 1")
        self._most = 2 * max_blocks
        self._size = 1
        self._numbers = np.empty(0, np.int64)
        self._sums = np.empty((0, 0))
        self._maxima = np.empty((0, 0))
        self._finite = np.empty((0, 0), np.int64)
        self._nonfinite = np.empty((0, 0), np.int64)

    def feed(self, steps: Steps, values: Floats) -> None:
        """Add rows.

        Parameters
        ----------
        steps : int array, (row,)
            Greater than all steps before, increasing.
        values : float32 array, (row, column)
            As read from a record, where an unmeasured cell differs from a NaN by its bits. May be
            wider than before: columns are only ever appended.
        """
        for first in range(0, len(steps), SLAB_ROWS):
            slab = slice(first, first + SLAB_ROWS)
            self._append(steps[slab], values[slab], values[slab], 1)

    def feed_means(self, steps: Steps, mean: Floats, maximum: Floats, n_rows: int) -> None:
        """Add what a pyramid has of some blocks of ``n_rows`` rows, each at its first step.

        Every row of a block counts as measured where any is. Of a block with a value that is not
        finite nothing else is known.
        """
        self._append(steps, mean, maximum, n_rows)

    def _append(self, steps: Steps, mean: Floats, maximum: Floats, n_rows: int) -> None:
        """Put ``steps`` at the end, reduced to blocks of a size with which there is room for all.

        Only the steps determine the size, so the values are read once.
        """
        self._widen(mean.shape[1])
        numbers = self._make_room(steps)
        starts = _starts(numbers)
        if not len(starts):
            return
        finite = np.isfinite(mean)
        lost = measured(mean) & ~finite
        # In float64: the sum of many float32 values loses digits.
        sums = np.add.reduceat(np.where(finite, mean, np.float32(0)), starts, dtype=np.float64)
        maxima = np.maximum.reduceat(np.where(finite, maximum, np.float32(-np.inf)), starts)
        n_finite = np.add.reduceat(finite, starts, dtype=np.int64)
        self._numbers = np.concatenate([self._numbers, numbers[starts]])
        self._sums = np.concatenate([self._sums, sums * n_rows])
        self._maxima = np.concatenate([self._maxima, maxima])
        self._finite = np.concatenate([self._finite, n_finite * n_rows])
        n_lost = np.add.reduceat(lost, starts, dtype=np.int64)
        self._nonfinite = np.concatenate([self._nonfinite, n_lost])
        # The new rows may share their first block with the last one before.
        self._merge()

    def blocks(self) -> Blocks:
        """Return the reductions so far."""
        empty = self._finite == 0
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(empty, np.nan, self._sums / self._finite)
        maxima = np.where(empty, np.nan, self._maxima)
        return Blocks(
            self._size,
            self._numbers * self._size,
            mean.astype(np.float32),
            maxima.astype(np.float32),
            # A copy, as `_merge` and `_append` go on with the arrays.
            self._finite.copy(),
            self._nonfinite.copy(),
        )

    def _make_room(self, steps: Steps) -> Steps:
        """Return the block numbers of ``steps``, after enlarging the blocks until they all fit."""
        size = self._size
        numbers = steps // size
        # From the steps alone, so that the values are reduced once, to their final size.
        while len(_starts(np.concatenate([self._numbers, numbers]))) > self._most:
            self._size *= 2
            self._numbers //= 2
            numbers //= 2
        if self._size > size:
            self._merge()
        return numbers

    def _merge(self) -> None:
        """Reduce rows of equal block number to one."""
        starts = _starts(self._numbers)
        if len(starts) == len(self._numbers):
            return
        self._numbers = self._numbers[starts]
        self._sums = np.add.reduceat(self._sums, starts)
        self._maxima = np.maximum.reduceat(self._maxima, starts)
        self._finite = np.add.reduceat(self._finite, starts)
        self._nonfinite = np.add.reduceat(self._nonfinite, starts)

    def _widen(self, n_columns: int) -> None:
        n_more = n_columns - self._sums.shape[1]
        if not n_more:
            return
        added = ((0, 0), (0, n_more))
        self._sums = np.pad(self._sums, added)
        self._maxima = np.pad(self._maxima, added, constant_values=-np.inf)
        self._finite = np.pad(self._finite, added)
        self._nonfinite = np.pad(self._nonfinite, added)


def _starts(numbers: Steps) -> npt.NDArray[np.intp]:
    """Return the start of each run of equal numbers; the numbers never decrease."""
    is_first = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)
