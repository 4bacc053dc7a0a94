"""A heat map of a run of any length: block reductions on a grid of steps that coarsens as it grows.

Each increment is reduced once. If there are too many blocks, adjacent ones are merged in pairs, so
memory and the cost of a picture depend on its width, not on the length of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Floats, Steps

__all__ = ["BlockRows", "BlockThinner", "Blocks", "Latest"]

SLAB_ROWS = 8192
"""Rows reduced at a time: bounds the memory when a whole run is fed at once."""

COLUMNS_PER_GAP = 8
"""A complete round may lack one of this number of columns, at least one; most columns have a value.
"""

Counts = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Latest:
    """Latest measured value of each column, and its step; arrays are (row, column)."""

    steps: Steps
    values: Floats


@dataclass(frozen=True, slots=True)
class BlockRows:
    """Rows to add, or blocks of ``n_rows`` rows each; arrays are (block, column)."""

    steps: Steps
    """(block,) First step of each."""
    mean: Floats
    maximum: Floats
    n_rows: int
    latest: Latest
    """Last value measured in each block; what stands where nothing was measured is not read."""


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
    last_steps: Steps
    """Step of the last measured value; -1 where there is none."""
    last_values: Floats
    """The last measured value itself, finite or not; NaN where there is none."""
    round_steps: Steps
    """(block,) Step of the last complete round, see `BlockThinner.feed`; -1 without one."""

    def coarser(self, size: int) -> Blocks:
        """Return these blocks merged to blocks of ``size`` steps."""
        numbers, starts = np.unique(self.first_steps // size, return_index=True)
        # The mean is NaN where nothing is finite, and NaN times 0 would stay NaN.
        sums = np.where(self.n_finite, self.mean.astype(np.float64), 0.0) * self.n_finite
        n_finite = _by_groups(np.add, self.n_finite, starts)
        with np.errstate(invalid="ignore"):
            mean = (_by_groups(np.add, sums, starts) / n_finite).astype(np.float32)
        last_steps, last_values = _last_ones(self.last_steps, self.last_values, starts)
        return Blocks(
            size=size,
            first_steps=numbers * size,
            mean=mean,
            # fmax ignores NaN; `maximum` would spread it over the merged block.
            maximum=_by_groups(np.fmax, self.maximum, starts),
            n_finite=n_finite,
            n_nonfinite=_by_groups(np.add, self.n_nonfinite, starts),
            last_steps=last_steps,
            last_values=last_values,
            round_steps=_by_groups(np.maximum, self.round_steps, starts),
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
        # Twice as many: halving them leaves at least the requested number.
        self._most = 2 * max_blocks
        self._size = 1
        self._numbers = np.empty(0, np.int64)
        self._sums = np.empty((0, 0))
        self._maxima = np.empty((0, 0))
        self._finite = np.empty((0, 0), np.int64)
        self._nonfinite = np.empty((0, 0), np.int64)
        self._last_steps = np.empty((0, 0), np.int64)
        self._last_values = np.empty((0, 0), np.float32)
        self._rounds = np.empty(0, np.int64)
        # Columns that have had a value; a round is complete relative to those.
        self._known = np.zeros(0, bool)

    def feed(self, steps: Steps, values: Floats, turns_from: float = np.inf) -> None:
        """Add rows.

        A row in which the quantity was due at all columns is a complete round: a column without a
        value there had none to give. Before ``turns_from`` every row with a value is one.

        Parameters
        ----------
        steps : int array, (row,)
            Greater than all steps before, increasing.
        values : float32 array, (row, column)
            Values as read from a record, where an unmeasured cell differs from a NaN by its bits.
            May be wider than before: columns are only ever appended.
        turns_from : float
            First step from which columns may be measured in turns: from there on a row is a
            complete round if nearly all columns with values have one in it, see `COLUMNS_PER_GAP`.
        """
        for first in range(0, len(steps), SLAB_ROWS):
            slab = slice(first, first + SLAB_ROWS)
            rows, values_there = steps[slab], values[slab]
            known = measured(values_there)
            latest = Latest(np.broadcast_to(rows[:, None], known.shape), values_there)
            self._append(BlockRows(rows, values_there, values_there, 1, latest), known, turns_from)

    def feed_means(self, blocks: BlockRows, turns_from: float = np.inf) -> None:
        """Add what a pyramid has of some blocks of rows, each at its first step.

        If any row of a block is measured, all its rows count as measured. Of a block with a value
        that is not finite, only that is known.
        """
        self._append(blocks, measured(blocks.mean), turns_from)

    def _append(self, added: BlockRows, known: Mask, turns_from: float) -> None:
        """Put ``steps`` at the end, reduced to blocks of a size with which there is room for all.

        Only the steps determine the size, so the values are read once.
        """
        mean, maximum, n_rows = added.mean, added.maximum, added.n_rows
        self._widen(mean.shape[1])
        numbers = self._make_room(added.steps)
        starts = _starts(numbers)
        if not len(starts):
            return
        finite = np.isfinite(mean)
        lost = known & ~finite
        if not finite.all():  # mostly it is all, and a copy of everything is saved
            mean = np.where(finite, mean, np.float32(0))
            maximum = np.where(finite, maximum, np.float32(-np.inf))
        # In float64: the sum of many float32 values loses digits.
        sums = _by_groups(np.add, mean, starts, dtype=np.float64)
        maxima = _by_groups(np.maximum, maximum, starts)
        n_finite = _by_groups(np.add, finite, starts, dtype=np.int64)
        self._numbers = np.concatenate([self._numbers, numbers[starts]])
        self._sums = np.concatenate([self._sums, sums * n_rows])
        self._maxima = np.concatenate([self._maxima, maxima])
        self._finite = np.concatenate([self._finite, n_finite * n_rows])
        n_lost = _by_groups(np.add, lost, starts, dtype=np.int64)
        self._nonfinite = np.concatenate([self._nonfinite, n_lost])
        last = _last_rows(known, starts)
        steps = np.where(last < 0, -1, _at_rows(added.latest.steps, last))
        values = np.where(last < 0, np.nan, _at_rows(added.latest.values, last))
        self._last_steps = np.concatenate([self._last_steps, steps])
        self._last_values = np.concatenate([self._last_values, values.astype(np.float32)])
        rounds = np.where(self._complete(added.steps, known, turns_from), added.steps, -1)
        self._rounds = np.concatenate([self._rounds, _by_groups(np.maximum, rounds, starts)])
        # The new rows may share their first block with the last one before.
        self._merge()

    def _complete(self, steps: Steps, known: Mask, turns_from: float) -> Mask:
        """Return which rows are complete rounds, and note the columns that have had a value."""
        n_known = np.count_nonzero(known, axis=1)
        before = self._known
        first_rows = np.zeros(known.shape[1], np.intp)
        late = np.flatnonzero(~known[0])
        first_rows[late] = np.where(
            known[:, late].any(axis=0), known[:, late].argmax(axis=0), len(known)
        )
        n_columns = before.sum() + np.searchsorted(
            np.sort(first_rows[~before]), np.arange(len(known)), "right"
        )
        self._known = before | known.any(axis=0)
        n_gaps = n_columns - n_known
        nearly_all = (n_gaps <= np.maximum(1, n_columns // COLUMNS_PER_GAP)) & (n_gaps < n_known)
        found: Mask = np.where(steps < turns_from, n_known > 0, nearly_all)
        return found

    def blocks(self) -> Blocks:
        """Return the reductions so far."""
        empty = self._finite == 0
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(empty, np.nan, self._sums / self._finite)
        maxima = np.where(empty, np.nan, self._maxima)
        return Blocks(
            size=self._size,
            first_steps=self._numbers * self._size,
            mean=mean.astype(np.float32),
            maximum=maxima.astype(np.float32),
            # A copy, as `_merge` and `_append` continue to change the arrays.
            n_finite=self._finite.copy(),
            n_nonfinite=self._nonfinite.copy(),
            last_steps=self._last_steps.copy(),
            last_values=self._last_values.copy(),
            round_steps=self._rounds.copy(),
        )

    def _make_room(self, steps: Steps) -> Steps:
        """Return the block numbers of ``steps``, after enlarging the blocks until they all fit."""
        size = self._size
        numbers = steps // size
        # From the steps alone, so that the values are reduced once, to their final size.
        while len(_starts(np.concatenate([self._numbers, numbers]))) > self._most:
            self._size *= 2
            # A block's number halves when its size doubles, so borders never move.
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
        self._sums = _by_groups(np.add, self._sums, starts)
        self._maxima = _by_groups(np.maximum, self._maxima, starts)
        self._finite = _by_groups(np.add, self._finite, starts)
        self._nonfinite = _by_groups(np.add, self._nonfinite, starts)
        self._rounds = _by_groups(np.maximum, self._rounds, starts)
        lasts = self._last_steps, self._last_values
        self._last_steps, self._last_values = _last_ones(*lasts, starts)

    def _widen(self, n_columns: int) -> None:
        n_more = n_columns - self._sums.shape[1]
        if not n_more:
            return
        added = ((0, 0), (0, n_more))
        self._sums = np.pad(self._sums, added)
        # -inf is neutral for a maximum; 0 would be one for negative values.
        self._maxima = np.pad(self._maxima, added, constant_values=-np.inf)
        self._finite = np.pad(self._finite, added)
        self._nonfinite = np.pad(self._nonfinite, added)
        self._last_steps = np.pad(self._last_steps, added, constant_values=-1)
        self._last_values = np.pad(self._last_values, added, constant_values=np.nan)
        self._known = np.pad(self._known, (0, n_more))


def _starts(numbers: Steps) -> npt.NDArray[np.intp]:
    """Return the start of each run of equal numbers; the numbers never decrease."""
    is_first = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def _by_groups(
    ufunc: np.ufunc, rows: npt.NDArray[Any], starts: Rows, dtype: npt.DTypeLike | None = None
) -> npt.NDArray[Any]:
    """Reduce each group of rows to one, as ``ufunc.reduceat(rows, starts, dtype=dtype)`` does.

    Neighboring groups of one length are reduced together, as one more axis: that adds whole rows,
    and takes a tenth of the time of `reduceat`, which goes down each column.
    """
    lengths = np.diff(np.append(starts, len(rows)))
    changes = np.flatnonzero(np.diff(lengths)) + 1
    firsts = [0, *changes.tolist(), len(starts)]
    parts = []
    for first, after in pairwise(firsts):
        length, start = int(lengths[first]), int(starts[first])
        end = start + length * (after - first)
        groups = rows[start:end].reshape(after - first, length, *rows.shape[1:])
        parts.append(ufunc.reduce(groups, axis=1, dtype=dtype))
    return np.concatenate(parts)


def _last_rows(known: Mask, starts: npt.NDArray[np.intp]) -> Rows:
    """Return the last known row of each group and column; -1 where there is none."""
    ends = np.append(starts[1:], len(known)) - 1
    # Mostly every column is known in every row, and no search is needed.
    if known[ends].all():
        return np.broadcast_to(ends[:, None], (len(ends), known.shape[1]))
    rows = np.where(known, np.arange(len(known), dtype=np.int32)[:, None], np.int32(-1))
    return _by_groups(np.maximum, rows, starts).astype(np.intp)


def _at_rows(table: npt.NDArray[Any], rows: Rows) -> npt.NDArray[Any]:
    return table[rows, np.arange(table.shape[1])]


def _last_ones(steps: Steps, values: Floats, starts: npt.NDArray[np.intp]) -> tuple[Steps, Floats]:
    """Return the last step and value of each group of blocks."""
    last = _last_rows(steps >= 0, starts)
    found = np.where(last < 0, -1, _at_rows(steps, last))
    return found, np.where(last < 0, np.float32(np.nan), _at_rows(values, last))
