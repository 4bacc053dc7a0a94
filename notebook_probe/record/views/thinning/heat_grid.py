"""One quantity over modules and steps, reduced to the cells of a heat map as the run grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.source import Floats, LevelView, Source, StreamView
from notebook_probe.record.views.thinning.blocks import Blocks, BlockThinner

__all__ = ["LOST", "MEASURED", "UNMEASURED", "Cells", "Grid", "HeatGrid"]

Cells: TypeAlias = Literal["max", "mean"]
"""Value of a cell with several steps: the largest keeps a spike, the mean the level."""

MEASURED, UNMEASURED, LOST = 0, 1, 2
"""States of a cell: a value, nothing recorded, or NaN or infinity among what was."""

ROWS_PER_READ = 2**13
FAR_ROWS = 2**15
"""Number of rows that are read as fast as the pyramid's blocks of them."""
BLOCKS_PER_COLUMN = 4
"""Blocks per column: block borders differ from column borders, and must not be visible."""
PATIENCE = 4
"""A gap between two rows of a schedule is its own pause up to so many times the gaps around it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of (module, column); column ``c`` covers ``size`` steps from ``first + c * size``."""

    modules: tuple[str, ...]
    first: int
    size: int
    mean: Floats
    maximum: Floats
    state: npt.NDArray[np.uint8]

    @property
    def last(self) -> int:
        """Last step of the last column."""
        return self.first + self.size * self.mean.shape[1] - 1

    def values(self, cells: Cells) -> Floats:
        """Return the displayed values of the cells."""
        return self.mean if cells == "mean" else self.maximum

    def limits(self, log: bool, cells: Cells = "mean") -> tuple[float, float] | None:
        """Return the least finite mean and the greatest cell; positive if ``log``; None if empty.

        Maxima and means therefore share the lower end of the scale.
        """
        means = self.mean[np.isfinite(self.mean)]
        means = means[means > 0] if log else means
        if not len(means):
            return None
        shown = self.values(cells)
        return float(means.min()), float(shown[np.isfinite(shown)].max())


class HeatGrid:
    """Heat map of a quantity; reads each row once, and `grid` costs the same for any length.

    Parameters
    ----------
    quantity : str
    n_columns : int
        Most columns of the grid; there are more than a quarter as many once there are rows.
    window : (float, float), optional
        Steps outside it are not read.
    """

    def __init__(
        self, quantity: str, n_columns: int, window: tuple[float, float] | None = None
    ) -> None:
        self.quantity, self.n_columns, self.window = quantity, n_columns, window
        self._streams: dict[str, _ReducedRows] = {}

    def read_new(self, source: Source) -> None:
        """Take in what the source has gained since the last call, or all that was written over."""
        self.read(source.streams)

    def read(self, streams: Mapping[str, StreamView]) -> None:
        """Read the new rows of some streams; see `read_new`."""
        for name, stream in streams.items():
            if any(variable.name == self.quantity for variable in stream.variables):
                # Rows were replaced: what was reduced of them cannot be undone.
                if name not in self._streams or self._streams[name].version != stream.version:
                    self._streams[name] = _ReducedRows(self.n_columns, self.window, stream)
                self._streams[name].read_new(stream, self.quantity)

    def grid(self, order: Sequence[str]) -> Grid | None:
        """Return the cells, modules in the given order; None before the first value."""
        parts = [part for part in self._streams.values() if part.any_row]
        blocks = [part.thinner.blocks() for part in parts]
        names = _with_values(parts, blocks, order)
        if not names:
            return None
        size = max(block.size for block in blocks)
        first = min(part.first_step for part in parts)
        last = max(part.last_step for part in parts)
        # Powers of two, so that blocks of all streams merge to it without a remainder.
        while last // size - first // size >= self.n_columns:
            size *= 2
        cells = _Cells(names, first // size, last // size)
        for part, block in zip(parts, blocks, strict=True):
            cells.add(part.modules, block.coarser(size))
        return cells.grid(size)


class _ReducedRows:
    """Rows of one stream in the window, reduced to blocks of steps."""

    def __init__(
        self, n_columns: int, window: tuple[float, float] | None, stream: StreamView
    ) -> None:
        self.thinner = BlockThinner(max(1, n_columns // 2))
        self.version = stream.version
        self._n_columns = n_columns
        self.modules: tuple[str, ...] = ()
        self.first_step = self.last_step = -1
        self._stop_step = np.inf if window is None else window[1]
        self._n_seen = 0 if window is None else int(np.searchsorted(stream.steps(), window[0]))

    @property
    def any_row(self) -> bool:
        return self.last_step >= 0

    def read_new(self, stream: StreamView, quantity: str) -> None:
        n_rows = stream.n_rows  # before the modules: these may only be more than the rows have
        if not self.any_row:
            self._read_level(stream, quantity, n_rows)
        self._read_rows(stream, quantity, n_rows)

    def _read_level(self, stream: StreamView, quantity: str, n_rows: int) -> None:
        """Read older rows from the pyramid, in several blocks per column."""
        if np.isfinite(self._stop_step):
            n_rows = int(np.searchsorted(stream.steps(), self._stop_step, "right"))
        level, modules = _level(stream, quantity, self._n_seen, n_rows, self._n_columns)
        if level is None:
            return
        low, high = -(-self._n_seen // level.size), min(level.n_blocks, n_rows // level.size)
        # The rows before the first whole block in the window.
        self._read_rows(stream, quantity, low * level.size)
        for start in range(low, high, ROWS_PER_READ):
            stop = min(high, start + ROWS_PER_READ)
            reduced = level.reduced(quantity, modules, start, stop)
            steps = level.steps(start, stop)
            self.thinner.feed_means(steps, reduced["mean"], reduced["max"], level.size)
            self._note(modules, steps[0], stream.steps(stop * level.size - 1, stop * level.size)[0])
            self._n_seen = stop * level.size

    def _read_rows(self, stream: StreamView, quantity: str, n_rows: int) -> None:
        while self._n_seen < n_rows and self.last_step < self._stop_step:
            start, stop = self._n_seen, min(n_rows, self._n_seen + ROWS_PER_READ)
            steps = stream.steps(start, stop)
            inside = int(np.searchsorted(steps, self._stop_step, "right"))
            # All further steps are greater still.
            if inside == 0:
                return
            modules = stream.modules
            values = stream.values(quantity, start, start + inside, modules)
            self.thinner.feed(steps[:inside], values)
            self._note(modules, steps[0], steps[inside - 1])
            self._n_seen = start + inside

    def _note(self, modules: tuple[str, ...], first_step: np.int64, last_step: np.int64) -> None:
        if not self.any_row:
            self.first_step = int(first_step)
        self.modules, self.last_step = modules, int(last_step)


def _level(
    stream: StreamView, quantity: str, start: int, stop: int, n_columns: int
) -> tuple[LevelView | None, tuple[str, ...]]:
    """Return the coarsest level with `BLOCKS_PER_COLUMN`, and the modules it has."""
    if stop - start <= FAR_ROWS:
        return None, ()
    most = _rows_per_column(stream, start, stop, n_columns) / BLOCKS_PER_COLUMN
    fine = [level for size, level in stream.levels.items() if size <= most]
    if not fine:
        return None, ()
    level = max(fine, key=lambda one: one.size)
    known = tuple(takewhile(lambda module: level.has(quantity, module), stream.modules))
    return (level, known) if known else (None, ())


def _rows_per_column(stream: StreamView, start: int, stop: int, n_columns: int) -> float:
    """Return the rows per column; columns cover the least power of two steps that fits."""
    first, last = stream.steps(start, start + 1)[0], stream.steps(stop - 1, stop)[0]
    n_steps, size = int(last - first) + 1, 1
    while n_steps > size * n_columns:
        size *= 2
    return (stop - start) * size / n_steps


class _Cells:
    """Sums over (module, column); several streams may hold values of the same module."""

    def __init__(self, names: Sequence[str], first: int, last: int) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._first = first
        shape = (len(names), last - first + 1)
        self._sums = np.zeros(shape)
        self._maximum = np.full(shape, -np.inf)
        self._n_finite = np.zeros(shape, np.int64)
        self._n_lost = np.zeros(shape, np.int64)

    def add(self, modules: Sequence[str], blocks: Blocks) -> None:
        """Add the blocks of one stream, of the grid's own size."""
        columns = np.array([c for c, name in enumerate(modules) if name in self._places], np.int64)
        places = np.array([self._places[modules[column]] for column in columns], np.int64)
        source = _block_of_column(
            blocks.first_steps // blocks.size - self._first, self._sums.shape[1]
        )
        shown = np.flatnonzero(source >= 0)
        cells = np.ix_(places, shown)
        taken = np.ix_(source[shown], columns)
        mean, n_finite = blocks.mean[taken].T, blocks.n_finite[taken].T
        self._sums[cells] += np.where(n_finite, mean, 0.0) * n_finite
        # NaN of one stream must not hide the value of another.
        self._maximum[cells] = np.fmax(self._maximum[cells], blocks.maximum[taken].T)
        self._n_finite[cells] += n_finite
        self._n_lost[cells] += blocks.n_nonfinite[taken].T

    def grid(self, size: int) -> Grid:
        any_finite = self._n_finite > 0
        state = np.where(any_finite, MEASURED, UNMEASURED)
        # After MEASURED: a cell with a NaN among good values is shown as lost.
        state[self._n_lost > 0] = LOST
        mean = np.divide(
            self._sums, self._n_finite, out=np.full_like(self._sums, np.nan), where=any_finite
        )
        return Grid(
            modules=tuple(self._places),
            first=self._first * size,
            size=size,
            mean=mean.astype(np.float32),
            maximum=np.where(any_finite, self._maximum, np.nan).astype(np.float32),
            state=state.astype(np.uint8),
        )


def _with_values(
    parts: Sequence[_ReducedRows], blocks: Sequence[Blocks], order: Sequence[str]
) -> list[str]:
    """Return the modules with any value; those not in ``order`` are last."""
    found: dict[str, None] = {}
    for part, block in zip(parts, blocks, strict=True):
        columns = np.flatnonzero((block.n_finite + block.n_nonfinite).sum(axis=0))
        found |= dict.fromkeys(part.modules[column] for column in columns)
    known = set(order)
    return [name for name in order if name in found] + [name for name in found if name not in known]


def _block_of_column(numbers: npt.NDArray[np.int64], n_columns: int) -> npt.NDArray[np.int64]:
    """Return the block that each column shows, -1 for none.

    A value is shown until its schedule is due again, so that a slow schedule does not look removed:
    a gap is filled unless it is far longer than the neighboring ones.
    """
    columns = np.arange(n_columns)
    source = np.searchsorted(numbers, columns, "right") - 1
    gaps = np.diff(numbers)
    around = np.maximum(np.append(gaps[:1], gaps[:-1]), np.append(gaps[1:], gaps[-1:]))
    stands = np.where(gaps <= PATIENCE * around, gaps, 1)
    stands = np.append(stands, gaps[-1:] if len(gaps) else 1)
    age = columns - numbers[source]
    return np.where((source >= 0) & (age < stands[source]), source, -1)
