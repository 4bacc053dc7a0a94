"""The first row of each module from which on so many are far apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from notebook_probe.compare.band import centre_of, noise_of
from notebook_probe.compare.deviation import Scale, apart, smoothed
from notebook_probe.compare.partings import Parting
from notebook_probe.compare.row_pairs import SLIGHTLY, RowPairs
from notebook_probe.compare.tables import Doubles

__all__ = ["Found", "firsts"]

Found = dict[str, Parting | None]
"""Of each module that both have: where it parts, None where it does not."""


def firsts(pairs: RowPairs, scale: Scale, factor: float, rows: int) -> Found:
    """Where modules part, smoothed over so many rows; those without values are left out."""
    seeds = scale.placed(pairs.others)
    centre = centre_of(seeds)
    far = smoothed(apart(scale.placed(pairs.this), centre), rows)
    bound = np.maximum(scale.bound(factor), _noise(seeds, centre, rows))
    is_far = np.abs(far) > bound
    return {
        module: _first(module, pairs.steps, far[row], is_far[row], rows)
        for row, module in enumerate(pairs.modules)
        if not np.isnan(far[row]).all()
    }


def _noise(seeds: Doubles, centre: Doubles, rows: int) -> Doubles:
    """How far from their centre one more seed would be."""
    if len(seeds) == 1:
        return np.zeros_like(centre)
    return noise_of(np.stack([smoothed(apart(seed, centre), rows) for seed in seeds]))


def _first(
    module: str, steps: Doubles, far: Doubles, is_far: npt.NDArray[np.bool_], rows: int
) -> Parting | None:
    """The first of so many on end; rows without a value are passed over."""
    known = ~np.isnan(far)
    counts = np.cumsum(np.append(0, is_far[known]))
    starts = np.flatnonzero(counts[rows:] - counts[:-rows] == rows)
    if not len(starts):
        return None
    row = np.flatnonzero(known)[starts[0]]
    step = int(np.ceil(steps[row] - SLIGHTLY))
    return Parting(module, step, float(far[row]), float(far[known][-1]))
