"""Medians and means of earlier rows, for conditions to compare with. Nothing here warns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = [
    "LEAST",
    "Doubles",
    "first_known",
    "goes_on_elsewhere",
    "highest_before",
    "last_known",
    "mean_before",
    "median",
    "moves_evenly",
    "of_most",
    "over_median",
    "rows_before",
    "steps_since",
    "value_at",
    "within_most",
]

Doubles = npt.NDArray[np.float64]

LEAST = 10
"""Measured rows that a usual value is made of at least."""


def median(values: Doubles, axis: int) -> Doubles:
    """Return the median along an axis, NaN left out; NaN where there is nothing else.

    Examples
    --------
    >>> median(np.array([[1.0, 5.0, np.nan, 2.0], [np.nan] * 4]), axis=1).tolist()
    [2.0, nan]
    """
    ordered = np.sort(np.moveaxis(values, axis, -1))  # NaN goes to the end
    shape, length = ordered.shape[:-1], ordered.shape[-1]
    if not length:
        return np.full(shape, np.nan)
    rows = ordered.reshape(-1, length)
    n, each = length - np.count_nonzero(np.isnan(rows), axis=1), np.arange(len(rows))
    low = rows[each, np.maximum(n - 1, 0) // 2]
    high = rows[each, np.minimum(n // 2, np.maximum(n - 1, 0))]
    with np.errstate(invalid="ignore", over="ignore"):
        middle: Doubles = np.where(low == high, low, (low + high) / 2)
    return middle.reshape(shape)


def over_median(
    values: Doubles, window: int, times: float, least: int = LEAST, apart: float = 0.0
) -> Doubles:
    """Return each value over the median of ``window`` earlier rows, if that exceeds ``times``.

    Parameters
    ----------
    values : (row, module)
    least : int
        Least number of earlier rows with a value.
    apart : float
        Least distance of the logarithm from the usual one, in deviations of the rows before, by
        their median, if there are ten. Ten times the usual value means nothing in a series that
        often is a tenth of it.

    Returns
    -------
    (row, module)
        NaN where it does not, where too few of the rows before have a value, and where
        their median is 0. Only what may exceed is worked out.
    """
    out = np.full(values.shape, np.nan)
    finite = np.where(np.isfinite(values), values, np.nan)
    if not values.size:
        return out
    lowest = np.fmin.reduce(finite, axis=0)  # a median is not below it
    rows, modules = np.nonzero(finite > times * lowest)
    for first in range(0, len(rows), 4096):
        row, module = rows[first : first + 4096], modules[first : first + 4096]
        back = row[:, None] - np.arange(1, window + 1)
        before = np.where(back >= 0, values[np.maximum(back, 0), module[:, None]], np.nan)
        usual = median(before, axis=1)
        n_before = np.count_nonzero(~np.isnan(before), axis=1)
        known = (n_before >= least) & (usual > 0)
        factor = finite[row, module] / np.where(known, usual, np.nan)
        is_far = factor > times
        if apart:
            with np.errstate(all="ignore"):
                apart_enough = np.log(factor) > apart * _deviation(before, usual)
            is_far &= apart_enough | (n_before < LEAST)
        out[row, module] = np.where(is_far, factor, np.nan)
    return out


def _deviation(before: Doubles, usual: Doubles) -> Doubles:
    """Return the median distance of logarithms from the usual one; infinite for 0."""
    away = np.abs(np.log(np.maximum(before, 0.0)) - np.log(usual)[:, None])
    return median(away, axis=1)


def first_known(values: Doubles) -> float:
    """Return the first that is finite; NaN where none is.

    Examples
    --------
    >>> first_known(np.array([np.nan, 3.0, 1.0])), first_known(np.array([np.nan]))
    (3.0, nan)
    """
    known = np.flatnonzero(np.isfinite(values))
    return float(values[known[0]]) if len(known) else np.nan


def highest_before(values: Doubles, window: int) -> Doubles:
    """Return the largest of the ``window`` rows before each, without NaN; NaN if there is none.

    Examples
    --------
    >>> highest_before(np.array([[3.0], [1.0], [2.0], [0.0]]), 2)[:, 0].tolist()
    [nan, 3.0, 3.0, 2.0]
    """
    out = np.full(values.shape, np.nan)
    if window < 1 or not len(values):
        return out
    best, size = values, 1
    while size < window:  # the largest of so many rows, this one the last; twice as many at once
        further = min(size, int(window) - size)
        best = np.concatenate([best[:further], np.fmax(best[further:], best[:-further])])
        size += further
    out[1:] = best[:-1]
    return out


def of_most(values: Doubles) -> Doubles:
    """Return what two modules of three reach in each row, interpolated; NaN is left out.

    Examples
    --------
    >>> of_most(np.array([[0.1, 9.0, 0.2, 0.3], [np.nan, 1.0, np.nan, 8.0]])).round(6).tolist()
    [0.2, 2.0]
    """
    return _third(values, 1)


def within_most(values: Doubles) -> Doubles:
    """Return what two modules of three do not exceed in each row, as `of_most`.

    Use it for values that are small for most modules: a third of a deep network's layers are gains
    of 1.

    Examples
    --------
    >>> within_most(np.array([[0.1, 9.0, 0.2, 0.3], [np.nan, 1.0, np.nan, 8.0]])).round(6).tolist()
    [0.3, 4.0]
    """
    return _third(values, 2)


def _third(values: Doubles, n: int) -> Doubles:
    """Return the border of the first third, or the first two, in each row."""
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    ordered = np.sort(values, axis=1)  # NaN goes to the end
    last = n * np.maximum(np.count_nonzero(~np.isnan(values), axis=1) - 1, 0)
    ends = [np.take_along_axis(ordered, i[:, None], 1)[:, 0] for i in (last // 3, -(-last // 3))]
    part = last % 3 / 3
    with np.errstate(all="ignore"):
        between: Doubles = ends[0] ** (1 - part) * ends[1] ** part
    return np.where(ends[0] == ends[1], ends[0], between)


def mean_before(values: Doubles, window: int) -> Doubles:
    """Return the mean over ``window`` rows up to each; NaN until there are so many.

    Values that are not finite are left out; of fewer than ten values there is no mean, unless the
    window is shorter.

    Examples
    --------
    >>> mean_before(np.array([[1.0], [2.0], [4.0]]), 2)[:, 0].tolist()
    [nan, 1.5, 3.0]
    """
    window, out = int(window), np.full(values.shape, np.nan)
    n_means = len(values) - window + 1
    if n_means > 0:
        known = np.isfinite(values)
        finite = np.where(known, values, 0.0)
        total, n = np.zeros((2, n_means, *values.shape[1:]))
        for lag in range(window):  # each mean is summed in the same order, whatever is before it
            total += finite[lag : lag + n_means]
            n += known[lag : lag + n_means]
        out[window - 1 :] = np.where(n >= min(LEAST, window), total / np.maximum(n, 1), np.nan)
    return out


def rows_before(values: Doubles, n: int) -> Doubles:
    """Return for each row the one ``n`` rows before it; NaN if there is none.

    Examples
    --------
    >>> rows_before(np.array([[1.0], [2.0], [4.0]]), 1)[:, 0].tolist()
    [nan, 1.0, 2.0]
    """
    out = np.full(values.shape, np.nan)
    out[n:] = values[: max(0, len(values) - n)]
    return out


def steps_since(is_event: npt.NDArray[np.bool_], at: npt.NDArray[np.int64]) -> Doubles:
    """Return for each row the steps since the row after the last event; 0 at an event.

    Before any event, they count from the first row.

    Examples
    --------
    >>> steps_since(np.array([False, True, False, False]), np.array([0, 7, 9, 20])).tolist()
    [0.0, 0.0, 0.0, 11.0]
    """
    rows = np.arange(len(at))
    last = np.maximum.accumulate(np.where(is_event, rows, -1))
    begun = np.minimum(last + 1, rows)
    return np.asarray(at - at[begun], np.float64) if len(at) else np.zeros(0)


def value_at(values: Doubles, at: npt.NDArray[np.int64], back: float) -> Doubles:
    """Return for each row the last one at least ``back`` steps before it; NaN if there is none.

    Examples
    --------
    >>> value_at(np.array([[1.0], [2.0], [4.0]]), np.array([0, 7, 9]), 5)[:, 0].tolist()
    [nan, 1.0, 1.0]
    """
    then = np.searchsorted(at, at - back, side="right") - 1
    return np.where((then >= 0)[:, None], values[then], np.nan)


def moves_evenly(values: Doubles, together: float = 0.8, least: int = 15) -> bool:
    """Return whether successive differences have the same sign, ``together`` of them at least.

    One time in three is chance, where each step has another batch; several updates from one
    batch make a loss that moves evenly. Of ``least`` differences and fewer, nothing is known.

    Examples
    --------
    >>> moves_evenly(0.9 ** np.arange(40.0)), moves_evenly(np.arange(40.0) % 2)
    (True, False)
    """
    change = np.diff(values[np.isfinite(values)])
    change = change[change != 0]
    return len(change) > least and bool(np.mean(change[1:] * change[:-1] > 0) >= together)


def goes_on_elsewhere(loss: Doubles, recent: int, jump: float = 10.0) -> npt.NDArray[np.bool_]:
    """Return whether a row falls on from one that jumped, as a loss does when other data came.

    Such a jump is over in one row, and from there the loss falls at its former pace at least, as it
    did for ``recent`` rows, evenly. An update that throws the weights away leaves them where the
    next one changes much, a tenth of the jump (``1 / jump``) and more, or where nothing changes.

    Examples
    --------
    >>> falling = 0.9 ** np.arange(40.0)
    >>> loss = np.concatenate([falling, 2 * falling])[:, None]
    >>> np.flatnonzero(goes_on_elsewhere(loss, recent=30, jump=5)).tolist()
    [41]
    """
    out = np.zeros(loss.shape, np.bool_)
    before = rows_before(loss, 1)
    fall, rise = before - loss, before - rows_before(loss, 2)
    for row, column in np.argwhere((fall > 0) & (rise > jump * fall)):
        earlier = loss[max(0, row - 1 - recent) : row - 1, column]
        pace = median(np.abs(np.diff(earlier))[None], axis=1)[0]
        out[row, column] = fall[row, column] >= pace and moves_evenly(earlier)
    return out


def last_known(values: Doubles) -> Doubles:
    """Return for each row and module the newest value so far; NaN before the first.

    Modules that are measured in turns have no complete row.

    Examples
    --------
    >>> last_known(np.array([[1.0, np.nan], [np.nan, 2.0]])).tolist()
    [[1.0, nan], [1.0, 2.0]]
    """
    rows = np.where(np.isnan(values), 0, np.arange(len(values))[:, None])
    return np.asarray(np.take_along_axis(values, np.maximum.accumulate(rows, axis=0), axis=0))
