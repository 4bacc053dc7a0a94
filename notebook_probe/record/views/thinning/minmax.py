"""A series in fewer points, with every extremum kept."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.source import Thinned

__all__ = ["ends_of_blocks", "minmax", "minmax_rows", "spread"]

Points = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


def minmax(x: npt.ArrayLike, y: npt.ArrayLike, n_out: int) -> Thinned:
    """Return at most ``n_out`` points: minimum and maximum of equal spans of ``x``.

    The first and the last finite point are always among them. A series that is short enough is
    returned whole.

    Parameters
    ----------
    x : array_like, (n,)
        Increasing or equal, and finite; as drawn, so take the logarithm before for a log axis.
    y : array_like, (n,)
        NaN and infinity hide no finite extremum; they are reported in ``nonfinite``.
    n_out : int
        At least 4; two points per pixel lose nothing that can be seen.

    Raises
    ------
    ValueError
        ``n_out`` is less than 4, or x and y differ in shape.

    Examples
    --------
    >>> thinned = minmax(range(9), [0, 1, 9, 1, float("nan"), 1, -9, 1, 0], 6)
    >>> thinned.x.tolist(), thinned.y.tolist(), thinned.nonfinite.tolist()
    ([0.0, 2.0, 5.0, 6.0, 8.0], [0.0, 9.0, 1.0, -9.0, 0.0], [4.0])
    """
    if n_out < 4:
        raise ValueError(f"n_out={n_out}; at least 4: first, minimum, maximum, last")
    places, values = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if places.ndim != 1 or places.shape != values.shape:
        raise ValueError(f"x {places.shape} and y {values.shape}; equal lengths are needed")
    finite = np.isfinite(values)
    nonfinite = places[~finite]
    if len(nonfinite):
        places, values = places[finite], values[finite]
    if len(places) > n_out:
        # Two of the points are the ends; each bucket has a minimum and a maximum.
        rows = _extrema(places, values, (n_out - 2) // 2)
        places, values = places[rows], values[rows]
    return Thinned(places, values, nonfinite)


def minmax_rows(y: npt.ArrayLike, n_out: int, *, log: bool = False) -> Places:
    """Rows of at most ``n_out`` finite values, and of every value that is not finite, increasing.

    Parameters
    ----------
    y : array_like, (n,)
        Values of equal distance from each other.
    n_out : int
        See `minmax`.
    log : bool
        Equal distances on a logarithmic axis, where the early ones take more room.
    """
    n_rows = len(np.asarray(y))
    if n_rows <= n_out:
        return np.arange(n_rows)
    x = np.log1p(np.arange(n_rows)) if log else np.arange(n_rows, dtype=np.float64)
    thinned = minmax(x, y, n_out)
    return np.searchsorted(x, np.sort(np.concatenate([thinned.x, thinned.nonfinite])))


def ends_of_blocks(blocks: npt.NDArray[np.floating]) -> Places:
    """Return the sorted places of the smallest and largest finite value of each row."""
    finite = np.isfinite(blocks)
    smallest = np.where(finite, blocks, np.inf).argmin(axis=1)
    largest = np.where(finite, blocks, -np.inf).argmax(axis=1)
    return np.sort(np.stack([smallest, largest], axis=1), axis=1)


def spread(rows: Places, most: int) -> Places:
    """Return at most ``most`` of the rows, evenly spaced, with both ends."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _extrema(x: Points, y: Points, n_buckets: int) -> Places:
    """Places of the first minimum and maximum of each bucket, and of both ends; sorted."""
    edges = x[0] + _width((x[-1] - x[0]) / n_buckets) * np.arange(1, n_buckets)
    starts = _distinct(np.concatenate([[0], np.searchsorted(x, edges)]))  # no empty bucket
    starts = starts[starts < len(x)]
    sizes = np.diff(starts, append=len(x))
    bucket = np.repeat(np.arange(len(starts)), sizes)
    rows = [np.array([0, len(x) - 1])]
    for extremum in (np.minimum, np.maximum):
        hits = np.flatnonzero(y == np.repeat(extremum.reduceat(y, starts), sizes))
        # The first of each bucket: a flat line would otherwise keep all of its rows.
        rows.append(hits[np.diff(bucket[hits], prepend=-1) > 0])
    return _distinct(np.sort(np.concatenate(rows)))


def _width(least: float) -> float:
    """Return the least of 1, 5/4, 3/2 and 7/4 times powers of two that is at least ``least``.

    A growing series therefore keeps its buckets for a while, and with them its first points.
    """
    mantissa, exponent = math.frexp(least)
    return math.ldexp(math.ceil(8 * mantissa) / 8, exponent)


def _distinct(ordered: Places) -> Places:
    """Return each value once; numpy's ``unique`` would sort or hash sorted values again."""
    return ordered[np.diff(ordered, prepend=-1) > 0]
