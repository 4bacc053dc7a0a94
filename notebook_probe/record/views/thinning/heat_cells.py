"""Cells of a heat map: what was measured in each column, or stands there from a step before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from notebook_probe.checks import chosen_name
from notebook_probe.record.format.source import Floats, Steps
from notebook_probe.record.views.thinning.blocks import Blocks, Latest
from notebook_probe.record.views.thinning.run_extent import RunExtent
from notebook_probe.record.views.thinning.standing import NO_GAP, standing

__all__ = ["LOST", "MEASURED", "UNMEASURED", "Cells", "Grid", "HeatCells", "StreamCells"]

Cells: TypeAlias = Literal["max", "mean"]
"""Value of a cell with several steps: the largest keeps a spike, the mean the level."""

MEASURED, UNMEASURED, LOST = 0, 1, 2
"""States of a cell: a value, nothing recorded, or NaN or infinity among what was."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of (module, column); column ``c`` covers ``size`` steps from ``first + c * size``.

    A column in which a module was not due has its last value before: see `measured` for the step.
    """

    modules: tuple[str, ...]
    first: int
    size: int
    mean: Floats
    maximum: Floats
    state: npt.NDArray[np.uint8]
    measured: Steps
    """Step of the last value of each cell, which may be before its column; -1 without a value."""
    gap: npt.NDArray[np.uint8]
    """Reason why a cell without a value has none any more; `NO_GAP` before the first value."""
    end: int
    """Last step that the run has in the last column, which may be wider."""

    @property
    def last(self) -> int:
        """Last step of the last column."""
        return self.first + self.size * self.mean.shape[1] - 1

    @property
    def carried(self) -> npt.NDArray[np.bool_]:
        """Cells whose value was measured before their column."""
        starts = self.first + self.size * np.arange(self.mean.shape[1])
        return (self.measured >= 0) & (self.measured < starts)

    def values(self, cells: Cells) -> Floats:
        """Return the displayed values of the cells.

        Raises
        ------
        ValueError
            ``cells='min'; allowed: 'max', 'mean'``.
        """
        chosen_name("cells", cells, get_args(Cells))
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


@dataclass(frozen=True, slots=True)
class StreamCells:
    """Values of one stream, to be drawn."""

    modules: tuple[str, ...]
    blocks: Blocks | None
    """Blocks of the grid's own size; None if no row is in the picture."""
    before: Latest
    """Values that stand before the first column, (1, module)."""


class HeatCells:
    """Sums over (module, column); several streams may hold values of the same module."""

    def __init__(self, names: Sequence[str], first: int, last: int) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._first = first
        shape = (len(names), last - first + 1)
        self._sums = np.zeros(shape)
        self._maximum = np.full(shape, -np.inf)
        self._n_finite = np.zeros(shape, np.int64)
        self._n_lost = np.zeros(shape, np.int64)
        self._latest = Latest(np.full(shape, -1), np.full(shape, np.nan, np.float32))
        self._gap = np.full(shape, NO_GAP, np.uint8)

    def add(self, stream: StreamCells, quantity: str, size: int, extent: RunExtent) -> None:
        """Add the values of one stream."""
        wanted = [c for c, name in enumerate(stream.modules) if name in self._places]
        columns = np.array(wanted, np.int64)
        places = np.array([self._places[stream.modules[c]] for c in wanted], np.int64)
        numbers = np.empty(0, np.int64)
        if stream.blocks is not None:
            numbers = stream.blocks.first_steps // size - self._first
            self._pool(stream.blocks, columns, places, numbers)
        n_columns = self._sums.shape[1]
        until = (self._first + 1 + np.arange(n_columns)) * size - 1
        names = [stream.modules[column] for column in wanted]
        # The run may end within the last column.
        ends = extent.end_steps(quantity, names, np.minimum(until, extent.last_step))
        before = Latest(stream.before.steps[:, columns], stream.before.values[:, columns])
        here = standing(stream.blocks, columns, before, numbers, n_columns, ends)
        newer = here.steps > self._latest.steps[places]
        for known, one in (
            (self._latest.steps, here.steps),
            (self._latest.values, here.values),
            (self._gap, here.gap),
        ):
            known[places] = np.where(newer, one, known[places])

    def _pool(
        self,
        blocks: Blocks,
        columns: npt.NDArray[np.int64],
        places: npt.NDArray[np.int64],
        numbers: npt.NDArray[np.int64],
    ) -> None:
        """Add the values that were measured in each column."""
        cells = np.ix_(places, numbers)
        mean, n_finite = blocks.mean[:, columns].T, blocks.n_finite[:, columns].T
        # The mean of an empty block is NaN, and NaN times 0 would stay NaN.
        self._sums[cells] += np.where(n_finite, mean, 0.0) * n_finite
        # NaN of one stream must not hide the value of another.
        self._maximum[cells] = np.fmax(self._maximum[cells], blocks.maximum[:, columns].T)
        self._n_finite[cells] += n_finite
        self._n_lost[cells] += blocks.n_nonfinite[:, columns].T

    def grid(self, size: int, end: int) -> Grid:
        """Return the cells; a column without a measurement has the value that stands there."""
        any_finite = self._n_finite > 0
        state = np.where(any_finite, MEASURED, UNMEASURED)
        # After MEASURED: a cell with a NaN among good values is shown as lost.
        state[self._n_lost > 0] = LOST
        mean = np.divide(
            self._sums, self._n_finite, out=np.full_like(self._sums, np.nan), where=any_finite
        )
        maximum = np.where(any_finite, self._maximum, np.nan)
        is_known = self._latest.steps >= 0
        # After a series has ended, its last value no longer stands.
        carried = (state == UNMEASURED) & is_known & (self._gap == NO_GAP)
        values = self._latest.values[carried]
        finite = np.isfinite(values)
        state[carried] = np.where(finite, MEASURED, LOST)
        mean[carried] = maximum[carried] = np.where(finite, values, np.nan)
        return Grid(
            modules=tuple(self._places),
            first=self._first * size,
            size=size,
            mean=mean.astype(np.float32),
            maximum=maximum.astype(np.float32),
            state=state.astype(np.uint8),
            measured=np.where(state == UNMEASURED, -1, self._latest.steps),
            gap=np.where(state == UNMEASURED, self._gap, NO_GAP).astype(np.uint8),
            end=end,
        )
