"""Divergence of runs: for every module, the first step from which on they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from notebook_probe.checks import is_number, whole_number
from notebook_probe.compare.axes import look_again
from notebook_probe.compare.deviation import DeviationScale, is_signed, scale_of
from notebook_probe.compare.first_rows import Found, firsts
from notebook_probe.compare.members import names_apart
from notebook_probe.compare.partings import Parting, Partings
from notebook_probe.compare.ratio_grid import RatioGrid, runs_of
from notebook_probe.compare.row_pairs import RowPairs, holding, n_values, row_pairs
from notebook_probe.compare.series import check_recorded
from notebook_probe.record.format.source import check_opened
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["PartingSearch", "parting"]

MOST_VALUES = 500_000
"""Values of a run that are all read; for longer ones the pyramid narrows the search."""
N_COLUMNS = 700
AROUND = 2
"""Columns on either side of the one where they part that are read row by row."""


def parting(
    this: RunSource,
    others: RunSource | Sequence[RunSource],
    quantity: str,
    *,
    factor: float = 2.0,
    rows: int | None = None,
    by: str = "step",
) -> Partings:
    r"""Return where this run diverges: per module the first step from which on they differ.

    .. math::
        \min \{k : |m_i| > \log_{10} f,\; i = k, \ldots, k + n - 1\}, \qquad
        m_i = \operatorname{median}_{|j - i| \le n / 2} \log_{10} (a_j / b_j)

    over the rows that both runs have, with ``f`` the factor and ``n`` the number of rows. The
    median follows a jump at once and ignores a single spike. A value that is NaN or infinite in one
    of them counts as different. The module diverges there if this is so at its last row, however
    few rows there are.

    With several others, the seeds of a group, :math:`\log b_j` is their mean, and a module diverges
    only where it also leaves the group's noise: the 99 % prediction interval of one more seed,
    :math:`t_{0.995} s \sqrt{1 + 1/n_{seeds}}`, and at least the distance of the farthest seed.

    Parameters
    ----------
    this : Source
        A run or an opened record.
    others : Source or sequence of Source
        Another run, or several that differ only in their seed.
    quantity : str
        A name or an alias. If the quantity is negative somewhere, or often zero, differences are in
        units of its spread, and ``factor`` is a number of these units.
    factor : float
        Above 1.
    rows : int, optional
        Number of successive rows, of the run that is measured most rarely; by default the rows of
        ten steps, and at least three. Modules whose last rows are far apart, but fewer, are in
        `Partings.lately`. For records of more than half a million values, means of columns are
        compared first, and then rows where these means diverge: a difference that ends within a
        column is not found there.
    by : str
        Axis on which steps are aligned, as for `align`.

    Raises
    ------
    ValueError
        For a factor of 1 or less, and less than one row.
    UnknownNameError
        No run has a record of the quantity; this run, or every other run, has none of a series that
        the axis needs. If only some lack it, they are named in `Partings.left_out`.

    Examples
    --------
    >>> parting(run, nbp.open_run("runs/digits-cnn-8.zarr"), "update_ratio")  # doctest: +SKIP
    Differs from digits-cnn-8 at step 412: conv3 · update_ratio ×2.1
    conv3: from step 412, ×2.1; now ×3.6
    """
    runs = runs_of(others)
    check_opened(this)
    check_recorded([this, *runs], quantity)
    return PartingSearch(this, runs, quantity, by=by).found(factor, rows)


class PartingSearch:
    """Repeated search for divergence while runs grow; long runs are read once; see `parting`.

    Parameters
    ----------
    this : Source
    others : sequence of Source
        One, or the seeds of a group.
    quantity, by : str

    Raises
    ------
    UnknownNameError
        This run, or every other run, has no record of a series that the axis needs.

    Examples
    --------
    >>> search = PartingSearch(run, [other], "update_ratio")  # doctest: +SKIP
    >>> search.found(factor=3.0).text  # doctest: +SKIP
    'They stay within ×3 at all 7 modules'
    """

    def __init__(
        self, this: RunSource, others: Sequence[RunSource], quantity: str, *, by: str = "step"
    ) -> None:
        check_opened(this)
        self._this, self._by = this, by
        self._quantity = this.recorded_name(quantity)
        self._grid = RatioGrid(this, others, self._quantity, by=by, n_columns=N_COLUMNS)
        self._members = self._grid.members

    @property
    def lost(self) -> list[tuple[RunSource, str]]:
        """Other runs that are left out so far, each with the reason."""
        return self._members.lost

    def found(self, factor: float = 2.0, rows: int | None = None) -> Partings:
        """Return where the runs diverge so far.

        Raises
        ------
        ValueError
            For a factor of 1 or less, and less than one row.
        """
        if not is_number(factor) or not factor > 1:
            raise ValueError(f"factor={factor!r}; a number above 1 is expected")
        if rows is not None:
            whole_number("rows", rows, 1)
        look_again([self._this, *self._members.runs])
        n_members = -1
        while n_members != len(self._members.runs):  # again, without runs that could not be read
            n_members = len(self._members.runs)
            runs = (self._this, *self._members.runs)
            is_short = all(n_values(run, self._quantity) <= MOST_VALUES for run in runs)
            look = self._in_rows if is_short else self._in_columns
            found, signed = look(factor, rows)
        return self._answer(found, signed, factor, rows)

    def _in_rows(self, factor: float, rows: int | None) -> tuple[Found, bool]:
        """Search all rows."""
        groups = self._pairs(self._modules, None)
        signed = is_signed(*(values for one in groups for values in (one.this, one.others)))
        found: Found = {}
        for pairs in groups:
            scale = scale_of(pairs.this, pairs.others, signed=signed)
            found |= firsts(pairs, scale, factor, rows)
        return found, signed

    def _in_columns(self, factor: float, rows: int | None) -> tuple[Found, bool]:
        """Search the columns of a heat map, then the rows around divergent ones."""
        self._grid.read_new()
        beside = self._grid.beside()
        if beside is None:
            return {}, False
        cells, scale = beside.grid, beside.scale
        starts = cells.first + cells.size * np.arange(beside.this.shape[1], dtype=np.float64)
        columns = RowPairs(cells.modules, starts, beside.this, beside.others)
        found = firsts(columns, scale, factor, 1)
        for row, module in enumerate(cells.modules):
            if coarse := found.get(module):
                found[module] = self._finer(coarse, cells.size, scale.of([row]), factor, rows)
        return found, not scale.is_ratio

    def _finer(
        self, coarse: Parting, size: int, scale: DeviationScale, factor: float, rows: int | None
    ) -> Parting:
        """Return the row at which a module diverges, near the column where it does."""
        window = coarse.step - AROUND * size, coarse.step + (AROUND + 1) * size
        for pairs in self._pairs([coarse.module], window):
            finer = firsts(pairs, scale, factor, rows).get(coarse.module)
            if finer and finer.n_rows >= finer.n_wanted:  # others end with the window, not the run
                return replace(finer, now=coarse.now)
        return coarse

    @property
    def _modules(self) -> tuple[str, ...]:
        """Modules in definition order, then entries that are not of the model."""
        known = [row.name for row in self._this.modules]
        held = holding(self._this, self._quantity)
        return tuple(dict.fromkeys([*known, *(one for each in held for one in each.modules)]))

    def _pairs(self, modules: Sequence[str], window: tuple[float, float] | None) -> list[RowPairs]:
        return row_pairs(self._this, self._members, self._quantity, modules, window)

    def _answer(self, found: Found, signed: bool, factor: float, rows: int | None) -> Partings:
        held = [
            {module for stream in holding(run, self._quantity) for module in stream.modules}
            for run in (self._this, *self._members.runs)
        ]
        this, *others = names_apart([self._this, *self._members.runs])
        parted = sorted(filter(None, found.values()), key=lambda one: one.step)
        return Partings(
            this=this,
            others=tuple(others),
            quantity=self._quantity,
            by=self._by,
            factor=factor,
            rows=rows,
            found=tuple(one for one in parted if one.is_certain),
            lately=tuple(one for one in parted if not one.is_certain),
            within=tuple(one for one in self._modules if one in found and found[one] is None),
            missing=tuple(sorted(set().union(*held) - found.keys())),
            is_signed=signed,
            left_out=self._members.left_out,
        )
