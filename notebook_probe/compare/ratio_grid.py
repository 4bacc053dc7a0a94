"""Divergence of two runs at every module, on the columns of the heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from notebook_probe.checks import step_window
from notebook_probe.compare.axes import look_again
from notebook_probe.compare.band import centre_of
from notebook_probe.compare.deviation import DeviationScale, apart, is_signed, scale_of
from notebook_probe.compare.members import Member, Members
from notebook_probe.compare.series import check_recorded
from notebook_probe.compare.tables import Doubles
from notebook_probe.record.format.source import Floats, Source, Steps, check_opened
from notebook_probe.record.views.thinning.heat_grid import (
    LOST,
    MEASURED,
    UNMEASURED,
    Grid,
    HeatGrid,
)
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["ComparedCells", "Ratio", "RatioGrid", "ratio"]

FINER = 2
"""Columns of the other run for each of this one, at least."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Distances (module, column); column ``c`` covers ``size`` steps from ``first + c * size``."""

    modules: tuple[str, ...]
    first: int
    size: int
    apart: Floats
    """Decades, ``log10(this / other)``, or differences in spreads if `is_signed`.

    NaN if either is not measured, infinite if one of them is not finite.
    """
    state: npt.NDArray[np.uint8]
    """State of each cell, as in a `Grid`: `MEASURED` if both are; `LOST` if not finite."""
    measured: Steps
    """Step of this run's last value in each cell, as in a `Grid`; -1 without a ratio."""
    end: int
    """Last step that this run has in the last column."""
    is_signed: bool
    """The quantity is signed or often zero: differences in units of its spread."""
    limit: float
    """Limit of a picture: 1 decade, ×10 and ÷10, or 3 spreads."""
    left_out: tuple[str, ...] = ()
    """Reasons why runs of a group are left out, a sentence each."""

    @property
    def last(self) -> int:
        """Last step of the last column."""
        return self.first + self.size * self.apart.shape[1] - 1


@dataclass(frozen=True, slots=True)
class ComparedCells:
    """Means of this run and others in equal cells; NaN if unmeasured, infinite if not finite."""

    grid: Grid
    this: Doubles
    """(module, column); a value counts in the column in which it was measured."""
    others: Doubles
    """(run, module, column)."""

    @property
    def scale(self) -> DeviationScale:
        """Scale of the comparison."""
        signed = is_signed(self.this, self.others)
        return scale_of(self.this, self.others, signed=signed)


class RatioGrid:
    """Ratio of runs on a grid of cells; reads each row of a growing run once.

    Parameters
    ----------
    this : Source
        The run whose modules and steps are the rows and columns.
    others : sequence of Source
        One run, or the seeds of a group, whose logarithms are averaged.
    quantity : str
    by : str
        Axis on which steps are aligned, as for `align`.
    n_columns : int
        Maximum number of columns; they equal those of a `HeatGrid`.
    window : (float, float), optional
        First and last step of this run to read.

    Attributes
    ----------
    members : Members
        The other runs, without those of a group that cannot be read.

    Raises
    ------
    UnknownNameError
        This run, or every other run, has no record of a series that the axis needs.
    """

    def __init__(
        self,
        this: RunSource,
        others: Sequence[RunSource],
        quantity: str,
        *,
        by: str = "step",
        n_columns: int = 700,
        window: tuple[float, float] | None = None,
    ) -> None:
        step_window(window)
        self._this, self._window = this, window
        self.members = Members(this, others, by)
        self._here = HeatGrid(this.recorded_name(quantity), n_columns, window)
        self._others = self.members.each(lambda one: _Other(one, quantity, n_columns))

    def read_new(self) -> None:
        """Read the new rows of the runs since the last call."""
        look_again([self._this, *self.members.runs])
        self._here.read_new(self._this)
        first, last = self._window or (0.0, _last_step(self._this, self._here.quantity))
        known = {id(other.member): other for other in self._others}

        def read(member: Member) -> _Other:
            known[id(member)].read_new(first, last)
            return known[id(member)]

        self._others = self.members.each(read)

    def beside(self) -> ComparedCells | None:
        """Return the aligned values; None before this run has any."""
        grid = self._here.grid([row.name for row in self._this.modules])
        if grid is None:
            return None
        others = [one.beside(grid) for one in self._others]
        this = np.where(grid.carried, np.nan, _values(grid))
        return ComparedCells(grid, this, np.stack(others))

    def grid(self) -> Ratio | None:
        """Return the distances; None before this run has any value."""
        found = self.beside()
        if found is None:
            return None
        scale = found.scale
        far = apart(scale.placed(found.this), centre_of(scale.placed(found.others)))
        states = np.where(np.isnan(far), UNMEASURED, MEASURED)
        states[~np.isnan(far) & (np.isinf(found.this) | np.isinf(found.others).all(axis=0))] = LOST
        grid = found.grid
        # Values of two steps are not compared: a ratio stands until this run is measured again.
        columns = _measured_columns(grid)
        far, states = (np.take_along_axis(one, columns, axis=1) for one in (far, states))
        measured = np.where(states == UNMEASURED, -1, grid.measured)
        return Ratio(
            modules=grid.modules,
            first=grid.first,
            size=grid.size,
            apart=far.astype(np.float32),
            state=states.astype(np.uint8),
            measured=measured,
            end=grid.end,
            is_signed=not scale.is_ratio,
            limit=scale.limit,
            left_out=self.members.left_out,
        )


def ratio(
    this: RunSource,
    others: RunSource | Sequence[RunSource],
    quantity: str,
    *,
    by: str = "step",
    n_columns: int = 700,
    window: tuple[float, float] | None = None,
) -> Ratio | None:
    r"""Return the divergence by module and step: :math:`\log_{10}` of the ratio of cell means.

    For a quantity that is negative somewhere, or zero in more than one cell of twenty, it is the
    difference in units of its spread (`Ratio.is_signed`).

    Parameters
    ----------
    this : Source
        A run or an opened record.
    others : Source or sequence of Source
        Another run, or the seeds of a group.
    quantity : str
        A name or an alias.
    by : str
        Axis on which steps are aligned, as for `align`.
    n_columns : int
        Maximum number of columns; they equal those of a heat map.
    window : (float, float), optional
        First and last step shown.

    Returns
    -------
    Ratio or None
        Dims (module, column); None if this run has no record of the quantity.

    Raises
    ------
    UnknownNameError
        No run has a record of the quantity; this run, or every other run, has none of a series that
        the axis needs.
    ValueError
        A window whose first step is above the last; no column.

    Examples
    --------
    >>> ratio(run, nbp.open_run("runs/other.zarr"), "grad_norm").apart  # doctest: +SKIP
    array([[0.01, 0.0, 0.32, 0.55]], dtype=float32)
    """
    runs = runs_of(others)
    check_recorded([this, *runs], quantity)
    grid = RatioGrid(this, runs, quantity, by=by, n_columns=n_columns, window=window)
    grid.read_new()
    return grid.grid()


def runs_of(others: RunSource | Sequence[RunSource]) -> Sequence[RunSource]:
    """Return a sequence of runs, from one or several."""
    if isinstance(others, str):  # a sequence, too
        check_opened(others)
    runs = others if isinstance(others, Sequence) else [others]
    check_opened(*runs)
    return runs


class _Other:
    """Another run, read up to the last step of this one."""

    def __init__(self, member: Member, quantity: str, n_columns: int) -> None:
        self.member = member
        self._quantity, self._n_columns = member.run.recorded_name(quantity), FINER * n_columns
        self._read: HeatGrid | None = None
        self._window = (np.inf, -np.inf)

    def read_new(self, first: float, last: float) -> None:
        low, high = self.member.alignment.steps_there([first, last]).tolist()
        low = low if low == low else 0.0
        if self._read is None or low < self._window[0] or self._window[1] < high:
            self._window = low, _power_of_two(high)
            self._read = HeatGrid(self._quantity, self._n_columns, self._window)
        self._read.read_new(self.member.run)

    def beside(self, here: Grid) -> Doubles:
        """Means in the cells of this run, (module, column)."""
        found = np.full(here.mean.shape, np.nan)
        there = None if self._read is None else self._read.grid(here.modules)
        if there is None:
            return found
        places = {module: row for row, module in enumerate(there.modules)}
        rows = [row for row, module in enumerate(here.modules) if module in places]
        taken = [places[here.modules[row]] for row in rows]
        found[rows] = _spans(_values(there)[taken], *self._columns(here, there))
        return found

    def _columns(self, here: Grid, there: Grid) -> tuple[Doubles, ...]:
        """Return the other run's first and last column per column of this one; NaN for none."""
        starts = here.first + here.size * np.arange(here.mean.shape[1], dtype=np.float64)
        ends = np.minimum(starts + here.size - 1, self.member.alignment.this.places.end)
        low, high = (
            self.member.alignment.steps_there(starts),
            self.member.alignment.steps_there(ends),
        )
        none = np.isnan(low) & np.isnan(high)
        low[np.isnan(low) & ~none], high[np.isnan(high) & ~none] = -np.inf, np.inf
        return tuple(np.floor((steps - there.first) / there.size) for steps in (low, high))


def _spans(values: Doubles, low: Doubles, high: Doubles) -> Doubles:
    """Means of (module, column) over the columns from ``low`` to ``high``; NaN beyond the ends."""
    n_columns = values.shape[1]
    inside = (high >= 0) & (low < n_columns)  # also False for NaN
    first = np.clip(low[inside], 0, n_columns - 1).astype(np.int64)
    stop = np.clip(high[inside], 0, n_columns - 1).astype(np.int64) + 1
    finite, lost = np.isfinite(values), np.isinf(values)
    sums, counts, n_lost = (
        np.pad(np.cumsum(one, axis=1), ((0, 0), (1, 0)))
        for one in (np.where(finite, values, 0.0), finite, lost)
    )
    with np.errstate(invalid="ignore"):
        mean = (sums[:, stop] - sums[:, first]) / (counts[:, stop] - counts[:, first])
    mean[n_lost[:, stop] > n_lost[:, first]] = np.inf
    found = np.full((len(values), len(low)), np.nan)
    found[:, inside] = mean
    return found


def _measured_columns(grid: Grid) -> npt.NDArray[np.int64]:
    """Return the column in which each cell was measured; its own for a value before the first."""
    own = np.broadcast_to(np.arange(grid.mean.shape[1]), grid.mean.shape)
    columns = (grid.measured - grid.first) // grid.size
    return np.where(grid.measured < grid.first, own, columns)


def _values(grid: Grid) -> Doubles:
    """Means; infinite where something is not finite, NaN where nothing was measured."""
    return np.where(grid.state == LOST, np.inf, grid.mean.astype(np.float64))


def _last_step(source: Source, quantity: str) -> float:
    streams = [
        one
        for one in source.streams.values()
        if one.n_rows and any(variable.name == quantity for variable in one.variables)
    ]
    return max((float(one.steps(one.n_rows - 1, one.n_rows)[0]) for one in streams), default=0.0)


def _power_of_two(step: float) -> float:
    """Round up, so that a growing run is seldom read again; infinite for NaN."""
    return float(2 ** np.ceil(np.log2(step + 1)) - 1) if step == step else np.inf
