"""Several runs as one: their mean, spread and number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from notebook_probe.compare.tables import Doubles

__all__ = ["Band", "band_of", "centre_of", "noise_of"]

T_99 = (63.66, 9.93, 5.85, 4.61, 4.04, 3.71, 3.5, 3.36, 3.25, 3.17)
"""Student's t at 99.5 %, of 1 to 10 degrees of freedom, rounded up."""
MANY = 3.11
"""Quantile for more runs."""


@dataclass(frozen=True, slots=True)
class Band:
    """Several runs at the same places of an axis; arrays are (place,), NaN where no run is."""

    x: Doubles
    mean: Doubles
    std: Doubles
    """Standard deviation over the runs, with ``n - 1``; NaN for fewer than two."""
    low: Doubles
    high: Doubles
    """Largest value; `low` is the smallest."""
    n: npt.NDArray[np.int64]
    """Number of runs with a finite value there."""
    left_out: tuple[str, ...] = ()
    """Reasons why other runs are left out, a sentence each."""


def band_of(x: Doubles, runs: Sequence[Doubles], *, log: bool = False) -> Band:
    """Return the band of several runs' values at places ``x``, each (place,).

    With ``log`` the mean is geometric, ``std`` a factor, and values that are not positive are
    ignored.

    Examples
    --------
    >>> band = band_of(np.array([0.0, 1.0]), [np.array([1.0, np.nan]), np.array([3.0, 5.0])])
    >>> band.mean.tolist(), band.std.round(3).tolist(), band.n.tolist()
    ([2.0, 5.0], [1.414, nan], [2, 1])
    """
    values = np.stack(runs) if runs else np.empty((0, len(x)))
    if log:
        values = np.where(values > 0, values, np.nan)
    n, mean, std = _moments(np.log(values) if log else values)
    if log:
        mean, std = np.exp(mean), np.exp(std)
    finite = np.isfinite(values)
    low = np.where(finite, values, np.inf).min(axis=0, initial=np.inf)
    high = np.where(finite, values, -np.inf).max(axis=0, initial=-np.inf)
    none = n == 0
    return Band(x, mean, std, np.where(none, np.nan, low), np.where(none, np.nan, high), n)


def centre_of(values: Doubles) -> Doubles:
    """Return the mean of finite values over the first axis, or else an infinity if there is one."""
    _, mean, _ = _moments(values)
    known = np.where(np.isnan(values), -np.inf, values).max(axis=0, initial=-np.inf)
    is_lost = np.isnan(mean) & ~np.isnan(values).all(axis=0)
    return np.where(is_lost, known, mean)


def noise_of(seeds: Doubles) -> Doubles:
    r"""Return how far one more seed may be from a group's center, from deviations (seed, ...).

    .. math:: \max\left(t_{0.995, n-1} \, s \sqrt{1 + 1 / n},\; \max_i |d_i|\right)

    the prediction interval at 99 % for one more run of a group of :math:`n` whose standard
    deviation is :math:`s`, and never narrower than the group itself. For one seed it is 0.
    """
    n, _, std = _moments(seeds)
    t = np.array([np.nan, *T_99, MANY])[np.minimum(np.maximum(n - 1, 0), len(T_99) + 1)]
    width = t * std * np.sqrt(1 + 1 / np.maximum(n, 1))
    farthest = np.where(np.isfinite(seeds), np.abs(seeds), 0.0).max(axis=0, initial=0.0)
    return np.fmax(width, farthest)


def _moments(values: Doubles) -> tuple[npt.NDArray[np.int64], Doubles, Doubles]:
    """Return count, mean and standard deviation of finite values along the first axis."""
    finite = np.isfinite(values)
    n = finite.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(finite, values, 0.0).sum(axis=0) / n
        squares = np.where(finite, (values - mean) ** 2, 0.0).sum(axis=0)
        std = np.where(n > 1, np.sqrt(squares / (n - 1)), np.nan)
    return n, mean, std
