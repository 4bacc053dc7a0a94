"""Where runs part: of every module the first step from which on they are far apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from notebook_probe.compare.alignment import Alignment
from notebook_probe.compare.axes import Run
from notebook_probe.compare.band import centre_of, noise_of
from notebook_probe.compare.deviation import Scale, apart, is_signed, scale_of, smoothed
from notebook_probe.compare.partings import Parting, Partings
from notebook_probe.compare.ratio_grid import RatioGrid, runs_of
from notebook_probe.compare.row_pairs import SLIGHTLY, RowPairs, holding, n_values, row_pairs
from notebook_probe.compare.tables import Doubles

__all__ = ["parting"]

MOST_VALUES = 500_000
"""Of one run, that are all read; of longer ones the pyramid says where to look."""
N_COLUMNS = 700
AROUND = 2
"""Columns on either side of the one where they part that are read row by row."""


def parting(
    this: Run,
    others: Run | Sequence[Run],
    quantity: str,
    *,
    factor: float = 2.0,
    rows: int = 10,
    by: str = "step",
) -> Partings:
    r"""Where this run parts from another: per module the first step from which on they are apart.

    .. math::
        \min \{k : |m_i| > \log_{10} f,\; i = k, \ldots, k + n - 1\}, \qquad
        m_i = \operatorname{median}_{|j - i| \le n / 2} \log_{10} (a_j / b_j)

    over the rows that both have, ``f`` the factor and ``n`` the rows. The median follows a step at
    once and is not moved by a single spike. What is NaN or infinite in one of them is apart.

    Of several others, the seeds of a group, :math:`\log b_j` is their mean, and a module parts only
    where it also leaves the group's own noise: the interval in which one more seed would lie with
    95 %, :math:`t_{0.975} s \sqrt{1 + 1/n_{seeds}}`, and at least as far as the farthest seed.

    Parameters
    ----------
    this : Source
        A run or an opened record.
    others : Source or sequence of Source
        Another run, or several that differ in their seed alone.
    quantity : str
        A name or an alias. Of one that is negative somewhere, or often zero, differences are taken
        in units of its spread, and ``factor`` is a number of these.
    factor : float
        Above 1.
    rows : int
        For how many rows on end, of the run that is measured most rarely. Of records of more than
        half a million values means of columns are looked at first, and then rows where these part:
        what comes and goes within a column is not seen there.
    by : str
        How steps are aligned, as for `align`.

    Raises
    ------
    ValueError
        For a factor of 1 or less, and less than one row.
    UnknownNameError
        What the axis needs is not recorded in one of them.

    Examples
    --------
    >>> parting(run, nbp.open_run("runs/digits-cnn-8.zarr"), "update_ratio")  # doctest: +SKIP
    Parts from digits-cnn-8 at step 412: conv3 · update_ratio ×2.1
    conv3: from step 412, ×2.1; now ×3.6
    """
    if not factor > 1:
        raise ValueError(f"factor={factor}; a number above 1 is expected")
    if rows < 1:
        raise ValueError(f"rows={rows}; at least 1")
    runs = runs_of(others)
    search = _Search(this, runs, quantity, factor, rows, by)
    is_short = all(n_values(run, quantity) <= MOST_VALUES for run in (this, *runs))
    return search.in_rows() if is_short else search.in_columns()


class _Search:
    """One question; reads what is there now."""

    def __init__(
        self, this: Run, others: Sequence[Run], quantity: str, factor: float, rows: int, by: str
    ) -> None:
        self._this, self._others, self._by = this, others, by
        self._quantity = this.recorded_name(quantity)
        self._factor, self._rows = factor, rows
        self._alignments = [Alignment(this, other, by) for other in others]
        self._modules = tuple(
            dict.fromkeys(
                [row.name for row in this.modules]
                + [module for stream in this.streams.values() for module in stream.modules]
            )
        )

    def in_rows(self) -> Partings:
        """Of all rows."""
        groups = self._pairs(self._modules, None)
        signed = is_signed(*(values for one in groups for values in (one.this, one.others)))
        found: dict[str, Parting | None] = {}
        for pairs in groups:
            scale = scale_of(pairs.this, pairs.others, signed=signed)
            found |= self._firsts(pairs.modules, pairs.steps, pairs.this, pairs.others, scale)
        return self._answer(found, signed)

    def in_columns(self) -> Partings:
        """Of the columns of a heat map, and of the rows round those where they part."""
        grid = RatioGrid(self._this, self._others, self._quantity, by=self._by, n_columns=N_COLUMNS)
        grid.read_new()
        beside = grid.beside()
        if beside is None:
            return self._answer({}, False)
        cells, scale = beside.grid, beside.scale
        starts = cells.first + cells.size * np.arange(beside.this.shape[1], dtype=np.float64)
        found = self._firsts(cells.modules, starts, beside.this, beside.others, scale, rows=1)
        for row, module in enumerate(cells.modules):
            if coarse := found.get(module):
                found[module] = self._finer(coarse, cells.size, scale.of([row]))
        return self._answer(found, not scale.is_ratio)

    def _finer(self, coarse: Parting, size: int, scale: Scale) -> Parting:
        """The row at which a module parts about the column where it does."""
        window = coarse.step - AROUND * size, coarse.step + (AROUND + 1) * size
        for pairs in self._pairs([coarse.module], window):
            each = self._firsts(pairs.modules, pairs.steps, pairs.this, pairs.others, scale)
            if finer := each.get(coarse.module):
                return Parting(coarse.module, finer.step, finer.there, coarse.now)
        return coarse

    def _firsts(
        self,
        modules: Sequence[str],
        steps: Doubles,
        this: Doubles,
        others: Doubles,
        scale: Scale,
        rows: int | None = None,
    ) -> dict[str, Parting | None]:
        """Where each module parts, None where it does not; those that have no values left out."""
        rows = self._rows if rows is None else rows
        seeds = scale.placed(others)
        centre = centre_of(seeds)
        far = smoothed(apart(scale.placed(this), centre), rows)
        bound = np.maximum(scale.bound(self._factor), _noise(seeds, centre, rows))
        return {
            module: _first(module, steps, far[row], np.abs(far[row]) > bound[row], rows)
            for row, module in enumerate(modules)
            if not np.isnan(far[row]).all()
        }

    def _pairs(self, modules: Sequence[str], window: tuple[float, float] | None) -> list[RowPairs]:
        return row_pairs(
            self._this, self._alignments, self._others, self._quantity, modules, window
        )

    def _answer(self, found: Mapping[str, Parting | None], signed: bool) -> Partings:
        parted = sorted(filter(None, found.values()), key=lambda one: one.step)
        within = tuple(module for module in self._modules if module in found and not found[module])
        held = [
            {module for stream in holding(run, self._quantity) for module in stream.modules}
            for run in (self._this, *self._others)
        ]
        return Partings(
            this=self._this.name,
            others=tuple(other.name for other in self._others),
            quantity=self._quantity,
            by=self._by,
            factor=self._factor,
            rows=self._rows,
            found=tuple(parted),
            within=within,
            missing=tuple(sorted(set().union(*held) - found.keys())),
            is_signed=signed,
        )


def _noise(seeds: Doubles, centre: Doubles, rows: int) -> Doubles:
    """How far from their centre one more seed would be."""
    if len(seeds) == 1:
        return np.zeros_like(centre)
    return noise_of(np.stack([smoothed(apart(seed, centre), rows) for seed in seeds]))


def _first(
    module: str, steps: Doubles, far: Doubles, is_far: npt.NDArray[np.bool_], rows: int
) -> Parting | None:
    """The first of so many rows on end that are far; rows without a value are passed over."""
    known = ~np.isnan(far)
    counts = np.cumsum(np.append(0, is_far[known]))
    starts = np.flatnonzero(counts[rows:] - counts[:-rows] == rows)
    if not len(starts):
        return None
    row = np.flatnonzero(known)[starts[0]]
    return Parting(
        module, int(np.ceil(steps[row] - SLIGHTLY)), float(far[row]), float(far[known][-1])
    )
