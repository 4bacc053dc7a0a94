"""Rows in memory: blocks filled by the training thread, read by everybody else without a lock.

A block is filled from the top. Its count is stored after the row, so a reader that looks at the
count first sees whole rows only. (This ordering is the interpreter lock's.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from notebook_probe.record.format.axes import Axes
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.source import Floats, Steps

__all__ = ["BufferedRows", "RowBlock", "row_bytes", "rows_per_block"]

BLOCK_BYTES = 2**20
MOST_ROWS = 4096
LEAST_ROWS = 8
MOST_BYTES = 2**22
"""Maximum bytes of a block with few rows."""


class RowBlock:
    """Room for some rows of equal width; ``base`` is the stream's row number of the first."""

    __slots__ = ("base", "capacity", "n", "nbytes", "shape", "steps", "times", "values")

    def __init__(self, base: int, shape: tuple[int, ...], capacity: int) -> None:
        self.base = base
        self.shape = shape
        """(n_variables, n_modules), and the length of a vector"""
        self.capacity = capacity
        self.n = 0
        # Uninitialized, as clearing takes time on the training thread: rows from n on are never
        # read.
        self.steps = np.empty(capacity, np.int64)
        self.times = np.empty(capacity, np.int64)
        self.values = np.empty((capacity, *shape), np.float32)
        self.nbytes = self.steps.nbytes + self.times.nbytes + self.values.nbytes

    @property
    def end(self) -> int:
        return self.base + self.n


def rows_per_block(shape: tuple[int, ...]) -> int:
    """Return the rows of a block of about `BLOCK_BYTES`; few rows may take `MOST_BYTES`."""
    n_bytes = row_bytes(shape)
    least = max(1, min(LEAST_ROWS, MOST_BYTES // n_bytes))
    return min(MOST_ROWS, max(least, BLOCK_BYTES // n_bytes))


def row_bytes(shape: tuple[int, ...]) -> int:
    """Memory of one row with its step and time."""
    return 4 * math.prod(shape) + 16


@dataclass(frozen=True, slots=True)
class BufferedRows:
    """The rows in memory at one moment, numbered as in their stream."""

    blocks: tuple[RowBlock, ...]
    start: int
    """First row in memory; earlier ones have been published."""
    stop: int
    axes: Axes

    def steps(self, start: int, stop: int) -> Steps:
        """Return the steps of rows ``start:stop``, (row,)."""
        parts = [block.steps[piece] for block, piece in self._pieces(start, stop)]
        # The empty array gives the type where no row is left.
        return np.concatenate([np.empty(0, np.int64), *parts])

    def times(self, start: int, stop: int) -> Steps:
        """Wall times in milliseconds of rows ``start:stop``, (row,)."""
        parts = [block.times[piece] for block, piece in self._pieces(start, stop)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def values(
        self, variable: int, start: int, stop: int, places: Sequence[int] | None = None
    ) -> Floats:
        """Return a variable of rows ``start:stop``, (row, module, ...), of all columns or some.

        A column is NaN before it was added.
        """
        n_columns = self.axes.shape[1] if places is None else len(places)
        shape = max(0, stop - start), n_columns, *self.axes.cell
        out = np.full(shape, NOT_MEASURED, np.float32)
        for block, piece in self._pieces(start, stop):
            # Blocks from before a quantity was added are narrower.
            if variable < block.shape[0]:
                rows = block.values[piece, variable]
                first = block.base + piece.start - start
                target = out[first : first + len(rows)]
                if places is None:
                    target[:, : block.shape[1]] = rows
                else:
                    inside = [i for i, place in enumerate(places) if place < block.shape[1]]
                    target[:, inside] = rows[:, [places[i] for i in inside]]
        return out

    def tables(self, start: int, stop: int) -> Iterator[tuple[Steps, Floats]]:
        """Yield steps and values (row, variable, module, ...) of rows ``start:stop``, uncopied.

        Later tables may be wider.
        """
        for block, piece in self._pieces(start, stop):
            yield block.steps[piece], block.values[piece]

    def _pieces(self, start: int, stop: int) -> list[tuple[RowBlock, slice]]:
        """Return the part of each block in rows ``start:stop``."""
        pieces = []
        for block in self.blocks:
            first = max(start - block.base, 0)
            # Read once: the training thread may add rows meanwhile.
            last = min(stop - block.base, block.n)
            if first < last:
                pieces.append((block, slice(first, last)))
        return pieces
