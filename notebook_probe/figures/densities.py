"""Histograms whose bins change from step to step, as densities between the same edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

__all__ = ["Densities", "densities", "has_own_widths"]

Floats = npt.NDArray[np.float64]

MOST_ROWS = 256


@dataclass(frozen=True, slots=True)
class Densities:
    """Shares of the finite elements per unit of their value."""

    values: Floats
    """(row, step); NaN where there is no element."""
    low: float
    high: float
    """Start of the first row and end of the last; all rows have the same height."""
    n_not_finite: int


def has_own_widths(series: xr.DataArray, along: str) -> bool:
    """Return whether the bin width differs between steps."""
    return f"{along}_width" in series.coords


def densities(series: xr.DataArray, along: str) -> Densities:
    """Return densities of a series of histograms with dims (step, ``along``).

    Rows are as high as the narrowest bins of any step, if there are few enough of them; wider bins
    are divided among rows, narrower bins are added.

    Raises
    ------
    ValueError
        No element is finite.
    """
    lower, upper = (np.asarray(series[f"{along}_{end}"].values, float) for end in ("lo", "hi"))
    counts, width = np.asarray(series.values, float), np.asarray(series[f"{along}_width"].values)
    finite = np.isfinite(lower)
    found, n_lost = counts[:, finite], int(np.nansum(counts[:, ~finite]))
    widths = np.asarray(width, float)
    used = np.nonzero(found)
    if not used[0].size:
        raise ValueError(f"nothing finite is recorded of {series.name} there")
    # Ends of bins are counted in widths, which differ from step to step.
    low = float((lower[finite][used[1]] * widths[used[0]]).min())
    high = float((upper[finite][used[1]] * widths[used[0]]).max())
    row = _row(widths[np.unique(used[0])], high - low)
    edges = row * np.arange(np.floor(low / row), np.ceil(high / row) + 1)
    ends = np.append(lower[finite], upper[finite][-1])
    below = np.cumsum(np.pad(found, ((0, 0), (1, 0))), axis=1)
    # Linear inside a bin, as if its elements were spread evenly; sums at edges lose none of them.
    inside = [
        np.diff(np.interp(edges, ends * one, n)) for one, n in zip(widths, below, strict=True)
    ]
    # A step without finite values divides 0 by 0: NaN, which is drawn as a gap.
    with np.errstate(invalid="ignore"):
        shares = np.array(inside) / below[:, -1:] / row
    return Densities(
        np.where(shares > 0, shares, np.nan).T, float(edges[0]), float(edges[-1]), n_lost
    )


def _row(widths: Floats, whole: float) -> float:
    """Return the smallest width with few enough rows in the whole; widths are its multiples."""
    enough = widths[widths * MOST_ROWS >= whole]
    return float(enough.min() if enough.size else widths.max())
