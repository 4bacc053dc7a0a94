"""The average that is drawn of a series: exponential, debiased, of every recorded value."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from notebook_probe.one_thread import one_thread

__all__ = ["Average", "capped", "is_averaged", "warm_up"]

BLOCK = 64
"""Values that are summed by one product of matrices."""
NEGLIGIBLE = 1e-9
SHARE = 10
"""Averages are of one value in so many, at most."""
GROWTH = 1.1
DOUBLE = 1e-17
"""Added to one it is lost."""

Numbers = npt.NDArray[np.floating]
Float64s = npt.NDArray[np.float64]


def warm_up(weight: float, negligible: float = NEGLIGIBLE) -> int:
    """Return the number of values after which earlier ones weigh less than 1e-9.

    Examples
    --------
    >>> [warm_up(weight) for weight in (0.0, 0.9, 0.99, 0.999)]
    [1, 197, 2062, 20713]
    """
    return 1 if weight == 0 else math.ceil(math.log(negligible) / math.log(weight))


def capped(weight: float, n_values: int) -> float:
    """Return at most ``1 - 10 / n``: averaging over more than a tenth of the values hides them.

    ``n`` is rounded down by up to a tenth, so that a growing series is seldom averaged again.

    Examples
    --------
    >>> [round(capped(0.9, n), 3) for n in (5, 20, 50, 100, 200)]
    [0.0, 0.487, 0.782, 0.898, 0.9]
    """
    if n_values <= SHARE:
        return 0.0
    grown = math.floor(math.log(n_values / SHARE, GROWTH))
    return min(weight, 1 - GROWTH**-grown)


def is_averaged(values: Numbers, *, log: bool) -> npt.NDArray[np.bool_]:
    """Mask of the values that an `Average` takes in."""
    return np.isfinite(values) & ((values > 0) | (not log))


class Average:
    r"""Debiased exponential averages of some series, which can be continued.

    For the finite values :math:`v_1, \ldots, v_n` so far and weight :math:`w`:

    .. math:: a_n = \sum_{i \le n} w^{n-i} v_i \Big/ \sum_{i \le n} w^{n-i}

    as in TensorBoard and W&B: every recorded value counts as one, however many steps are between
    two of them. The first one is its own average, so a series that starts late starts at its value,
    and after a gap the average continues. Where a value is NaN or infinite there is no average, and
    the next one ignores it.

    Parameters
    ----------
    weight : float
        0 changes nothing; less than 1.
    n_series : int
        Series that are followed together.
    log : bool
        Average the logarithms, as a logarithmic axis shows them; what is not positive has no place
        there, and counts as not finite.

    Examples
    --------
    >>> average = Average(0.5)
    >>> average.follow(np.array([[1.0], [np.nan], [4.0]])).ravel().tolist()
    [1.0, nan, 3.0]
    >>> average.follow(np.array([[3.0]])).item()
    3.0
    """

    def __init__(self, weight: float, n_series: int = 1, *, log: bool = False) -> None:
        if not 0 <= weight < 1:
            raise ValueError(f"weight={weight}; from 0 up to but not including 1")
        self._weight, self._log = weight, log
        # From there on the bias correction is 1 in float64.
        self._n_young = warm_up(weight, DOUBLE)
        self._sums = np.zeros(n_series)
        self._counts = np.zeros(n_series, np.int64)

    def follow(self, values: Numbers) -> Float64s:
        """Return the averages at the next values, both (value, series)."""
        finite = is_averaged(values, log=self._log).T
        # In C order by series, so that each product reads contiguous memory.
        placed = values.T.astype(np.float64, order="C")
        if self._log:
            np.log(placed, out=placed, where=finite)
        if finite.all():
            averages = self._averages(placed, slice(None))
        else:
            averages = np.full(placed.shape, np.nan)
            for one, (row, known) in enumerate(zip(placed, finite, strict=True)):
                averages[one, known] = self._averages(row[None, known], slice(one, one + 1))[0]
        return (np.exp(averages) if self._log else averages).T

    def _averages(self, finite: Float64s, which: slice) -> Float64s:
        """Average the finite values of some of the series; (series, value) here."""
        n = finite.shape[1]
        if n == 0:
            return finite
        # Products of matrices run at BLAS speed; the recurrence one by one does not vectorize.
        sums = _running_sums(finite, self._weight, self._sums[which])
        counts = self._counts[which, None] + np.arange(1, n + 1)
        self._sums[which], self._counts[which] = sums[:, -1], counts[:, -1]
        sums *= 1 - self._weight
        young = counts < self._n_young
        # The weights of n values add up to 1 - w^n.
        sums[young] /= 1 - self._weight ** counts[young]
        return sums


def _running_sums(values: Float64s, weight: float, before: Float64s) -> Float64s:
    """``sums[k] = weight * sums[k - 1] + values[k]`` along each row; ``before`` precedes the first.

    Return blocks computed separately, then add what each inherits: the same sum over the blocks'
    ends.
    """
    n_series, n = values.shape
    size = min(n, BLOCK)
    n_blocks = n // size
    whole, rest = np.split(values, [n_blocks * size], axis=1)
    ages = np.arange(size)[:, None] - np.arange(size)
    powers = np.where(ages >= 0, float(weight) ** np.maximum(ages, 0), 0.0)
    with one_thread():  # a training may run at the same time
        products = whole.reshape(-1, size) @ powers.T
    sums = products.reshape(n_series, n_blocks, size)
    inherited = before[:, None]
    if n_blocks > 1:
        ends = _running_sums(sums[:, :-1, -1], weight**size, before)
        inherited = np.concatenate([inherited, ends], axis=1)
    sums += inherited[:, :, None] * weight ** np.arange(1, size + 1)
    found = sums.reshape(n_series, -1)
    if rest.shape[1]:
        found = np.concatenate([found, _running_sums(rest, weight, found[:, -1])], axis=1)
    return found
