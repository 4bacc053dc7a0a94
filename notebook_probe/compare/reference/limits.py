"""Limits within which one more healthy run is of its references, by their number.

With three or four references the center is their geometric mean. A run differs where it is beyond a
factor and outside the 99 % prediction interval of one more seed. For outputs, gradients and
updates, it must also exceed the noise of the noisiest quantity of the same module: a layer with two
outputs starts with norms that are far apart, and four seeds may be near each other in one quantity
by chance, hardly in all.

One or two values say nothing about a spread. There a run differs where it is beyond a larger factor
from each of them: the largest for gradients, the smallest for weights, which many numbers average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from notebook_probe.compare.band import centre_of
from notebook_probe.compare.deviation import apart, scale_of, smoothed
from notebook_probe.compare.first_rows import FEWEST, firsts, wanted
from notebook_probe.compare.partings import Parting
from notebook_probe.compare.reference.stages import Stage, stage_of
from notebook_probe.compare.row_pairs import RowPairs
from notebook_probe.compare.tables import Doubles
from notebook_probe.record.format.source import Variable

__all__ = ["apart_in_decades", "center", "far_modules", "smallest_factor", "spreads"]

FACTORS_OF_FEW = {
    Stage.WEIGHTS: 2.0,
    Stage.FORWARD: 5.0,
    Stage.LOSS: 3.0,
    Stage.BACKWARD: 10.0,
    Stage.UPDATE: 5.0,
}
"""Smallest ratios that count with one or two references. For networks with 16 to 64 units, 99 % of
the pairs of healthy seeds are within ×1.5, ×3.3, ×1.1, ×5.8 and ×3.0, for all layers and
quantities.
"""
FACTORS_OF_MANY = {**dict.fromkeys(Stage, 2.0), Stage.WEIGHTS: 1.5}
FEWEST_FOR_A_BAND = 3
SPREADS = 4.0
"""Standard deviations of a module's noisiest quantity, of one more seed, within which it is."""
SHARE_OF_RANGE = 0.2
"""Difference of a quantity between two bounds, such as a share, from which on it counts."""


def far_modules(
    pairs: RowPairs,
    variable: Variable,
    factor: float | None,
    noise: Mapping[str, float],
) -> dict[str, Parting]:
    """Return the modules that differ from the references in enough rows, each with its first row.

    ``noise`` has the spread of seeds at a module, in decades, from all its quantities.

    Rows in which one of a module's references has no value are left out: with fewer of them the
    others would count as all.
    """
    found: dict[str, Parting] = {}
    n_refs = (~np.isnan(pairs.others).all(axis=2)).sum(axis=0)
    for n in set(n_refs.tolist()) - {0}:
        for rows, others in _alike(pairs, np.flatnonzero(n_refs == n), n):
            one = _comparable(pairs, rows, others, variable.bounds)
            found |= _far(one, factor or smallest_factor(variable, n), noise)
    return found


def smallest_factor(variable: Variable, n: int) -> float:
    """Return the smallest ratio that counts with this number of references."""
    factors = FACTORS_OF_FEW if n < FEWEST_FOR_A_BAND else FACTORS_OF_MANY
    return factors[stage_of(variable)]


def spreads(pairs: RowPairs) -> dict[str, float]:
    """Return the standard deviation of smoothed seeds in decades, by module; empty for few seeds.

    It is that of the median row.
    """
    if len(pairs.others) < FEWEST_FOR_A_BAND or not len(pairs.steps):
        return {}
    seeds = scale_of(pairs.this, pairs.others, signed=False).placed(pairs.others)
    middle = centre_of(seeds)
    n_rows = wanted(pairs.steps)
    far = np.stack([smoothed(apart(seed, middle), n_rows) for seed in seeds])
    known = np.isfinite(far).all(axis=0)
    squares = np.where(known, np.square(np.where(known, far, 0.0)).sum(axis=0), np.nan)
    return {
        module: float(np.sqrt(np.median(own[~np.isnan(own)]) / (len(seeds) - 1)))
        for module, own in zip(pairs.modules, squares, strict=True)
        if not np.isnan(own).all()
    }


def center(others: Doubles) -> Doubles:
    """Return the geometric mean of references (run, ...)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 10 ** np.asarray(centre_of(np.log10(others)))


def apart_in_decades(this: Doubles, others: Doubles) -> Doubles:
    """Return the ratio of values to those of the references, in decades."""
    scale = scale_of(this[None], others[None, None], signed=False)
    return apart(scale.placed(this), scale.placed(others))


def _alike(
    pairs: RowPairs, modules: npt.NDArray[np.intp], n: int
) -> Sequence[tuple[Sequence[int], Doubles]]:
    """Return modules together that have values in the same references, with these values."""
    if n == len(pairs.others):
        return [(modules.tolist(), pairs.others[:, modules])]
    parts = []
    for module in modules.tolist():
        values = pairs.others[:, [module]]
        parts.append(([module], values[~np.isnan(values).all(axis=(1, 2))]))
    return parts


def _comparable(
    pairs: RowPairs, modules: Sequence[int], others: Doubles, bounds: tuple[float, float] | None
) -> RowPairs:
    """Return the rows of some modules, without a value of this run where it cannot be compared."""
    this = np.where(np.isnan(others).any(axis=0), np.nan, pairs.this[modules])
    if bounds is not None:
        with np.errstate(invalid="ignore"):
            middle = others.mean(axis=0)
            is_near = np.abs(this - middle) < SHARE_OF_RANGE * (bounds[1] - bounds[0])
        this = np.where(is_near, center(others), this)
    names = tuple(pairs.modules[module] for module in modules)
    return RowPairs(names, pairs.steps, this, others)


def _far(pairs: RowPairs, factor: float, noise: Mapping[str, float]) -> dict[str, Parting]:
    """Return modules that are far from the group, or from each reference if there are few."""
    n = len(pairs.others)
    if n >= FEWEST_FOR_A_BAND:
        wide = SPREADS * np.sqrt(1 + 1 / n)
        least = np.array([wide * noise.get(module, 0.0) for module in pairs.modules])
        return _firsts(pairs, factor, least)
    none = np.zeros(len(pairs.modules))
    each = [_firsts(replace(pairs, others=other[None]), factor, none) for other in pairs.others]
    common = set(each[0]).intersection(*each[1:])
    return {name: max((one[name] for one in each), key=lambda one: one.step) for name in common}


def _firsts(pairs: RowPairs, factor: float, least: Doubles) -> dict[str, Parting]:
    scale = scale_of(pairs.this, pairs.others, signed=False)
    found = firsts(pairs, scale, factor, None, least)
    return {
        name: one
        for name, one in found.items()
        if one is not None and one.is_certain and one.n_rows >= FEWEST
    }
