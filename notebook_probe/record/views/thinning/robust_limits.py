"""The range of a color scale that a few wild values do not stretch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["robust_limits"]

FEW = 20
"""Cells of which none is called wild."""
ENOUGH = 20_000
"""Number of cells that is enough to estimate the middle half."""
FENCE = 3.0
"""Spreads of the middle half from its ends to the fences: Tukey's far out."""
MOST_DECADES = 8.0
"""Maximum decades of a logarithmic scale: more cannot be distinguished."""


def robust_limits(values: npt.ArrayLike, *, log: bool) -> tuple[float, float] | None:
    """Return the least and greatest finite value (positive if ``log``), without outliers.

    Outliers are further from the middle half of all values than three times its spread, and on a
    logarithmic scale at least a decade; such a scale has at most eight decades around the median.
    None without any value.

    Examples
    --------
    >>> healthy, diverged = np.geomspace(1e-3, 1e-1, 200), np.geomspace(1e2, 1e16, 15)
    >>> low, high = robust_limits([*healthy, *diverged, 1e-16], log=True)
    >>> 1e-8 < low <= 1e-3, 0.1 < high < 1e5
    (True, True)
    """
    given = np.asarray(values, np.float64).ravel()
    given = given[np.isfinite(given) & ((given > 0) | (not log))]
    if not given.size:
        return None
    placed = np.log10(given) if log else given
    low, high = float(placed.min()), float(placed.max())
    if placed.size >= FEW:
        some = placed[:: -(-placed.size // ENOUGH)]
        first, middle, third = np.quantile(some, [0.25, 0.5, 0.75])
        # At least one decade: nearly equal values are no outliers of each other.
        fence = max(FENCE * float(third - first), 1.0 if log else 0.0)
        if fence > 0:
            low, high = max(low, float(first) - fence), min(high, float(third) + fence)
        if log and high - low > MOST_DECADES:
            low = max(low, float(middle) - MOST_DECADES / 2)
            high = min(high, low + MOST_DECADES)
    if not log:
        return low, high
    least, greatest = float(given.min()), float(given.max())
    cut = low > placed.min(), high < placed.max()
    return 10.0**low if cut[0] else least, 10.0**high if cut[1] else greatest
