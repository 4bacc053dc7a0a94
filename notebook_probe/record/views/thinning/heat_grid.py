"""One quantity over modules and steps, reduced to the cells of a heat map as the run grows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TypeAlias

import numpy as np

from notebook_probe.checks import whole_number
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Floats, LevelView, Source, Steps, StreamView
from notebook_probe.record.views.thinning.blocks import BlockRows, BlockThinner, Latest
from notebook_probe.record.views.thinning.heat_cells import (
    LOST,
    MEASURED,
    UNMEASURED,
    Cells,
    Grid,
    HeatCells,
    StreamCells,
)
from notebook_probe.record.views.thinning.run_extent import RunExtent

__all__ = ["LOST", "MEASURED", "UNMEASURED", "Cells", "Grid", "HeatGrid", "HeatGrids", "Window"]

Window: TypeAlias = tuple[float, float] | None
"""First and last step that are shown; None for all."""

ROWS_PER_READ = 2**13
FAR_ROWS = 2**15
"""Number of rows that are read as fast as the pyramid's blocks of them."""
BLOCKS_PER_COLUMN = 4
"""Blocks per column: block borders differ from column borders, and must not be visible."""
ROWS_BEFORE = 64
"""Rows before a window that are read first, to find the values that stand where it begins."""
_ALL_STEPS = 2**62
"""Size of a block that all steps are in."""


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

    def __init__(self, quantity: str, n_columns: int, window: Window = None) -> None:
        # With none, blocks would be merged for ever.
        self.quantity, self.n_columns = quantity, whole_number("n_columns", n_columns, 1)
        self.window = window
        self._streams: dict[str, _ReducedRows] = {}
        self._extent = RunExtent(-1, np.inf, ())

    def read_new(self, source: Source) -> None:
        """Take in what the source has gained since the last call, or all that was written over."""
        self.read(source.streams, RunExtent.of(source))

    def read(self, streams: Mapping[str, StreamView], extent: RunExtent) -> None:
        """Read the new rows of some streams; see `read_new`."""
        self._extent = extent
        for name, stream in streams.items():
            if any(variable.name == self.quantity for variable in stream.variables):
                # Rows were replaced: what was reduced of them cannot be undone.
                if name not in self._streams or self._streams[name].version != stream.version:
                    self._streams[name] = _ReducedRows(self.n_columns, self.window, stream)
                self._streams[name].read_new(stream, self.quantity, extent.turns_from)

    def grid(self, order: Sequence[str]) -> Grid | None:
        """Return the cells, modules in the given order; None before the first value."""
        parts = [part for part in self._streams.values() if part.any_row or part.any_before]
        drawn = [part.cells() for part in parts]
        names = _with_values(drawn, order)
        first, end = self._range(parts)
        if not names or end < first:
            return None
        size = max((one.blocks.size for one in drawn if one.blocks is not None), default=1)
        # Powers of two, so that blocks of all streams merge to it without a remainder.
        while end // size - first // size >= self.n_columns:
            size *= 2
        cells = HeatCells(names, first // size, end // size)
        for one in drawn:
            # Blocks can be merged to coarser ones, never split.
            coarse = None if one.blocks is None else one.blocks.coarser(size)
            cells.add(replace(one, blocks=coarse), self.quantity, size, self._extent)
        return cells.grid(size, end)

    def _range(self, parts: Sequence[_ReducedRows]) -> tuple[int, int]:
        """Return the first step of the picture and the last one that the run has in it."""
        firsts = [part.first_step for part in parts if part.any_row]
        lasts = [part.last_step for part in parts if part.any_row]
        low, high = self.window or (0.0, np.inf)
        if any(part.any_before for part in parts):
            firsts.append(int(np.ceil(low)))
        if self._extent.last_step >= low:
            lasts.append(int(min(self._extent.last_step, high)))
        return min(firsts, default=0), max(lasts, default=-1)


class HeatGrids:
    """The heat maps of the last quantities, numbers of columns and windows.

    Parameters
    ----------
    most : int
        Number of grids that are kept: returning to a quantity, or out of a zoom, does not read the
        run again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._grids: OrderedDict[tuple[str, int, Window], HeatGrid] = OrderedDict()

    def of(self, quantity: str, n_columns: int, window: Window = None) -> HeatGrid:
        """Return the heat map, made if new; the least recently used one is dropped."""
        key = quantity, n_columns, window
        found = self._grids.pop(key, None) or HeatGrid(*key)
        self._grids[key] = found
        while len(self._grids) > self._most:
            self._grids.popitem(last=False)
        return found


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
        self._start_step, self._stop_step = window or (-np.inf, np.inf)
        self._n_seen = 0 if window is None else int(np.searchsorted(stream.steps(), window[0]))
        self._n_before: int | None = self._n_seen
        """Rows before the window; None once the values that stand there are known."""
        self._before = _no_values(0)
        self._turns_from = np.inf

    @property
    def any_row(self) -> bool:
        return self.last_step >= 0

    @property
    def any_before(self) -> bool:
        """Return whether a value stands before the first column."""
        return bool((self._before.steps >= 0).any())

    def read_new(self, stream: StreamView, quantity: str, turns_from: float) -> None:
        self._turns_from = turns_from
        n_rows = stream.n_rows  # before the modules: these may only be more than the rows have
        if not self.any_row:
            self._read_level(stream, quantity, n_rows)
        self._read_rows(stream, quantity, n_rows)
        self._read_before(stream, quantity)

    def cells(self) -> StreamCells:
        """Return the cells to draw."""
        # Modules may have been added since the values before the window were read.
        n_more = len(self.modules) - self._before.steps.shape[1]
        added = _no_values(n_more)
        before = Latest(
            np.concatenate([self._before.steps, added.steps], axis=1),
            np.concatenate([self._before.values, added.values], axis=1),
        )
        return StreamCells(self.modules, self.thinner.blocks() if self.any_row else None, before)

    def _read_before(self, stream: StreamView, quantity: str) -> None:
        """Read the values that stand where the window begins, unless all are measured there."""
        n_before, self._n_before = self._n_before, None
        if not n_before or self._starts_whole():
            return
        n_rows, modules = ROWS_BEFORE, stream.modules
        # Doubled until enough: most columns have a value within a few rows.
        while True:
            start = max(0, n_before - n_rows)
            found = BlockThinner(1)
            values = stream.values(quantity, start, n_before, modules)
            found.feed(stream.steps(start, n_before), values, self._turns_from)
            before = found.blocks()
            steps, last_round = before.last_steps.max(axis=0), before.round_steps.max()
            # What has no value in a complete round has none that stands.
            if start == 0 or last_round >= 0 or (steps >= 0).all():
                break
            n_rows *= 2
        latest = before.coarser(_ALL_STEPS)
        known = latest.last_steps >= last_round
        self._before = Latest(np.where(known, latest.last_steps, -1), latest.last_values)
        self.modules = self.modules or modules

    def _starts_whole(self) -> bool:
        """Return whether every column has a value at the first step of the window."""
        if not self.any_row or self.first_step > self._start_step:
            return False
        return bool((self.thinner.blocks().last_steps[0] >= 0).all())

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
            steps, mean = level.steps(start, stop), reduced["mean"]
            latest = _latest_of_blocks(
                stream=stream,
                quantity=quantity,
                modules=modules,
                first=start,
                steps=steps,
                mean=mean,
                size=level.size,
            )
            blocks = BlockRows(steps, mean, reduced["max"], level.size, latest)
            self.thinner.feed_means(blocks, self._turns_from)
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
            self.thinner.feed(steps[:inside], values, self._turns_from)
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
    # A prefix of the axis, so that columns agree with those of rows that are read later.
    known = tuple(takewhile(lambda module: level.has(quantity, module), stream.modules))
    return (level, known) if known else (None, ())


def _rows_per_column(stream: StreamView, start: int, stop: int, n_columns: int) -> float:
    """Return the rows per column; columns cover the least power of two steps that fits."""
    first, last = stream.steps(start, start + 1)[0], stream.steps(stop - 1, stop)[0]
    n_steps, size = max(1, int(last - first) + 1), 1  # a damaged record may lack its last row
    while n_steps > size * n_columns:
        size *= 2
    return (stop - start) * size / n_steps


def _latest_of_blocks(
    stream: StreamView,
    quantity: str,
    modules: tuple[str, ...],
    first: int,
    steps: Steps,
    mean: Floats,
    size: int,
) -> Latest:
    """Return the last value of each block of a pyramid's level, from block ``first`` on.

    Rows are read only of blocks whose value may be drawn in later columns; of others the mean and
    the first step are returned, as their column has a newer value.
    """
    known = measured(mean)
    found = Latest(np.repeat(steps[:, None], len(modules), axis=1), mean.copy())
    followed = np.zeros_like(known)
    for n_later in range(1, BLOCKS_PER_COLUMN):
        followed[:-n_later] |= known[n_later:]
    wanted = known & ~followed
    for block in np.flatnonzero(wanted.any(axis=1)).tolist():
        row = (first + block) * size
        columns = np.flatnonzero(wanted[block])
        values = stream.values(quantity, row, row + size, [modules[k] for k in columns])
        rows = size - 1 - measured(values)[::-1].argmax(axis=0)
        found.steps[block, columns] = stream.steps(row, row + size)[rows]
        found.values[block, columns] = values[rows, np.arange(len(columns))]
    return found


def _no_values(n_modules: int) -> Latest:
    return Latest(np.full((1, n_modules), -1), np.full((1, n_modules), np.nan, np.float32))


def _with_values(drawn: Sequence[StreamCells], order: Sequence[str]) -> list[str]:
    """Return the modules with any value; those not in ``order`` are last."""
    found: dict[str, None] = {}
    for one in drawn:
        known = one.before.steps[0] >= 0
        if one.blocks is not None:
            known = known | (one.blocks.last_steps >= 0).any(axis=0)
        found |= dict.fromkeys(one.modules[column] for column in np.flatnonzero(known))
    known_names = set(order)
    others = [name for name in found if name not in known_names]
    return [name for name in order if name in found] + others
