"""First row of each module from which on enough rows are far apart."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from notebook_probe.compare.band import centre_of, noise_of
from notebook_probe.compare.deviation import DeviationScale, apart, smoothed
from notebook_probe.compare.partings import Parting
from notebook_probe.compare.row_pairs import SLIGHTLY, RowPairs
from notebook_probe.compare.tables import Doubles

__all__ = ["FEWEST", "STEPS", "Found", "firsts", "wanted"]

Found = dict[str, Parting | None]
"""Divergence of each common module, None if it does not diverge."""

STEPS = 10
"""Number of steps for which a module must be far apart."""
FEWEST = 3
"""Smallest number of rows, as a single one may be an outlier."""


def wanted(steps: Doubles) -> int:
    """Return how many consecutive rows `STEPS` steps have, between `FEWEST` and `STEPS`.

    Examples
    --------
    >>> wanted(np.arange(0.0, 400.0)), wanted(np.arange(0.0, 400.0, 20.0))
    (10, 3)
    """
    gap = float(np.median(np.diff(steps))) if len(steps) > 1 else 1.0
    return min(STEPS, max(FEWEST, math.ceil(STEPS / gap - SLIGHTLY)))


def firsts(
    pairs: RowPairs,
    scale: DeviationScale,
    factor: float,
    rows: int | None,
    least: Doubles | None = None,
) -> Found:
    """Return where modules diverge, smoothed over so many rows; those without values excluded.

    A module that is far apart at its last rows has a `Parting` even if these are too few. ``least``
    (module,) has further bounds, in units of the scale.
    """
    n_wanted = wanted(pairs.steps) if rows is None else rows
    seeds = scale.placed(pairs.others)
    centre = centre_of(seeds)
    raw = apart(scale.placed(pairs.this), centre)
    far = smoothed(raw, n_wanted)
    bound = np.maximum(scale.bound(factor), _noise(seeds, centre, n_wanted))
    if least is not None:
        bound = np.maximum(bound, least[:, None])
    is_far = np.abs(far) > bound
    return {
        module: _first(module, pairs.steps, far[row], is_far[row], np.isinf(raw[row]), n_wanted)
        for row, module in enumerate(pairs.modules)
        if not np.isnan(far[row]).all()
    }


def _noise(seeds: Doubles, centre: Doubles, rows: int) -> Doubles:
    """Return how far one more seed may be from the center."""
    if len(seeds) == 1:
        return np.zeros_like(centre)
    return noise_of(np.stack([smoothed(apart(seed, centre), rows) for seed in seeds]))


def _first(
    module: str,
    steps: Doubles,
    far: Doubles,
    is_far: npt.NDArray[np.bool_],
    is_lost: npt.NDArray[np.bool_],
    n_wanted: int,
) -> Parting | None:
    """Return the first of so many consecutive rows that are far apart, ignoring missing ones.

    Without any, return the first of those that reach to the last row. ``is_lost`` marks rows that
    are finite in one of the runs only.
    """
    known = ~np.isnan(far)
    steps, far, is_far, is_lost = steps[known], far[known], is_far[known], is_lost[known]
    counts = np.cumsum(np.append(0, is_far))
    starts = np.flatnonzero(counts[n_wanted:] - counts[:-n_wanted] == n_wanted)
    is_last = is_far | is_lost
    if len(starts):
        row, n_rows = int(starts[0]), _on_end(is_far[starts[0] :])
    else:
        n_rows = _on_end(is_last[::-1])
        row = len(far) - n_rows
    if not n_rows:
        return None
    far = np.where(is_lost & np.isfinite(far), np.inf, far)
    step = int(np.ceil(steps[row] - SLIGHTLY))
    n_wanted = min(n_wanted, n_rows) if is_lost[-1] else n_wanted
    return Parting(module, step, float(far[row]), float(far[-1]), n_rows, n_wanted)


def _on_end(are: npt.NDArray[np.bool_]) -> int:
    """Return how many of the first are true, one after the other."""
    return int(np.argmin(are)) if not are.all() else len(are)
