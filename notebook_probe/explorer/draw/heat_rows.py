"""Rows of a heat map: those of a selection, and one for each folded module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from notebook_probe.compare.ratio_grid import Ratio
from notebook_probe.record.format.source import ROOT
from notebook_probe.record.views.thinning.heat_grid import Grid
from notebook_probe.record.views.thinning.standing import NO_GAP

__all__ = ["folded", "ratio_rows", "within"]

NONFINITE, ABSENT = 2, 1


def within(grid: Grid, places: Sequence[str]) -> Grid:
    """Return the rows at or below these places; all rows if there are none or none has values."""
    if not places or ROOT in places:
        return grid
    wanted = {*places}
    kept = [k for k, entry in enumerate(grid.modules) if _nearest(entry, wanted)]
    if not kept:
        return grid
    return replace(
        grid,
        modules=tuple(grid.modules[k] for k in kept),
        mean=grid.mean[kept],
        maximum=grid.maximum[kept],
        state=grid.state[kept],
        measured=grid.measured[kept],
        gap=grid.gap[kept],
    )


def folded(grid: Grid, folds: Sequence[str]) -> Grid:
    """Merge each folded module and everything below it into one row; keep the other rows.

    It has the mean of their means and the largest of their largest; a cell is not measured where
    none of them is, and not finite where one of them is not. Its step is that of the newest value.
    """
    wanted = {*folds}
    names = [_topmost(entry, wanted) or entry for entry in grid.modules] if wanted else []
    # A folded module's entries are neighbors in the order of the rows, so one pass finds the
    # groups.
    starts = [k for k, name in enumerate(names) if k == 0 or names[k - 1] != name]
    if len(starts) == len(names):
        return grid
    measured = grid.state != ABSENT
    n = np.add.reduceat(measured, starts, axis=0, dtype=np.int32)
    # NaN of an unmeasured cell would spread through the sum, and -inf below is neutral for a
    # maximum.
    total = np.add.reduceat(np.where(measured, grid.mean, 0.0), starts, axis=0)
    largest = np.maximum.reduceat(np.where(measured, grid.maximum, -np.inf), starts, axis=0)
    broken = np.logical_or.reduceat(grid.state == NONFINITE, starts, axis=0)
    mean = np.divide(total, n, out=np.full_like(total, np.nan), where=n > 0)
    state = np.where(broken, NONFINITE, np.where(n > 0, 0, ABSENT)).astype(grid.state.dtype)
    return replace(
        grid,
        modules=tuple(names[k] for k in starts),
        mean=mean,
        maximum=np.where(n > 0, largest, np.nan),
        state=state,
        measured=np.maximum.reduceat(grid.measured, starts, axis=0),
        gap=np.where(n > 0, NO_GAP, np.maximum.reduceat(grid.gap, starts, axis=0)),
    )


def ratio_rows(found: Ratio, places: Sequence[str], folds: Sequence[str]) -> Ratio:
    """Select and fold the rows of the ratio of two runs."""
    # A ratio has one number per cell, so it is both the mean and the maximum.
    cells = Grid(
        modules=found.modules,
        first=found.first,
        size=found.size,
        mean=found.apart,
        maximum=found.apart,
        state=found.state,
        measured=found.measured,
        gap=np.zeros_like(found.state),
        end=found.end,
    )
    grid = folded(within(cells, places), folds)
    return replace(
        found, modules=grid.modules, apart=grid.mean, state=grid.state, measured=grid.measured
    )


def _nearest(entry: str, wanted: set[str]) -> str:
    """Return the nearest of these that an entry is, or is below of; empty if there is none."""
    while entry and entry not in wanted:
        # `cell[0]` belongs to `cell`, as `a.b` to `a`.
        entry = entry.rpartition("[")[0] if entry.endswith("]") else entry.rpartition(".")[0]
    return entry


def _topmost(entry: str, wanted: set[str]) -> str:
    found = _nearest(entry, wanted)
    if ROOT in wanted:
        return ROOT
    above = found and _nearest(found.rpartition(".")[0], wanted)
    while above:
        found, above = above, _nearest(above.rpartition(".")[0], wanted)
    return found
