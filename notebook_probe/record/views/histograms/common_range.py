"""Histograms of several steps, each between its own ends, brought to bins that all have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["CommonRange", "n_common_bins", "on_common_range"]

Floats = npt.NDArray[np.float64]

MOST_BINS = 30


@dataclass(frozen=True, slots=True)
class CommonRange:
    """Histogram counts between the same edges at every step.

    Attributes
    ----------
    edges : array (bin + 1,)
    counts : array (step, bin)
        No whole numbers where a bin was split; each step's total is what it was.
    """

    edges: Floats
    counts: Floats


def n_common_bins(n: int) -> int:
    """Return the number of common bins for a number of elements.

    Examples
    --------
    >>> [n_common_bins(n) for n in (0, 5, 10, 280, 281)]
    [0, 2, 3, 29, 30]
    """
    if n <= 0:
        return 0
    return 2 if n <= 5 else 3 if n <= 10 else n // 10 + 1 if n <= 280 else MOST_BINS


def on_common_range(
    counts: npt.ArrayLike, lowest: npt.ArrayLike, highest: npt.ArrayLike
) -> CommonRange:
    """Bring histograms to equal bins between the least and the greatest value of any step.

    A bin that overlaps several gives each its share, so that totals do not change.

    Parameters
    ----------
    counts : array (step, bin)
        Equal bins from the lowest to the highest value of each step; NaN beyond the last.
    lowest, highest : array (step,)
        If they are equal, the bins extend by 0.5 to either side.

    Raises
    ------
    ValueError
        No step has a finite element.

    Examples
    --------
    >>> found = on_common_range([[4.0, 4.0], [8.0, 0.0]], [0.0, 1.0], [2.0, 3.0])
    >>> found.edges, found.counts.tolist()
    (array([0., 1., 2., 3.]), [[4.0, 4.0, 0.0], [0.0, 8.0, 0.0]])
    """
    table = np.asarray(counts, np.float64)
    low, high = np.array(lowest, np.float64), np.array(highest, np.float64)
    totals = np.nansum(table, axis=1)
    known = np.flatnonzero((totals > 0) & np.isfinite(low) & np.isfinite(high))
    if not known.size:
        raise ValueError("no step has a finite element")
    is_point = low == high
    # As np.histogram does, a single value gets a bin of width 1 around it.
    low, high = np.where(is_point, low - 0.5, low), np.where(is_point, high + 0.5, high)
    n_bins = n_common_bins(int(totals[known].max()))
    edges = np.linspace(low[known].min(), high[known].max(), n_bins + 1)
    found = np.full((len(table), n_bins), np.nan)
    for step in known:
        own = table[step][~np.isnan(table[step])]
        # Interpolating the cumulative counts spreads each bin evenly and keeps totals.
        below = np.append(0.0, np.cumsum(own))
        ends = np.linspace(low[step], high[step], len(own) + 1)
        found[step] = np.diff(np.interp(edges, ends, below))
    return CommonRange(edges, found)
