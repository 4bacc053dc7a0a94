r"""Distance of two values: in decades, or in units of a spread if they have signs.

A quantity is compared as a ratio, :math:`\log_{10} (a / b)`, unless one of its values is negative
or more than one in twenty is zero. Then it is a difference in units of the spread of the other run,
:math:`(a - b) / s`, with :math:`s` the standard deviation of the module's values over the steps,
or of all modules where it is the same at every step. NaN and infinite values count as infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from notebook_probe.compare.tables import Doubles

__all__ = [
    "DECADES",
    "SPREADS",
    "DeviationScale",
    "apart",
    "is_signed",
    "scale_of",
    "smoothed",
    "told",
]

MOST_ZEROS = 0.05
DECADES, SPREADS = 1.0, 3.0
"""Limits of pictures of ratios, and of differences: ×10, and three spreads."""


@dataclass(frozen=True, slots=True)
class DeviationScale:
    """Units of the distance of two runs."""

    is_ratio: bool
    spread: Doubles
    """(module, 1); 1 where ratios are taken."""

    @property
    def limit(self) -> float:
        """Limit of a picture."""
        return DECADES if self.is_ratio else SPREADS

    def bound(self, factor: float) -> float:
        """Return the distance of a factor, or of so many spreads."""
        return float(np.log10(factor)) if self.is_ratio else factor

    def placed(self, values: Doubles) -> Doubles:
        """Return values (module, row) whose difference is their distance."""
        if not self.is_ratio:
            return values / self.spread
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log10(values)

    def of(self, modules: Any) -> DeviationScale:
        """Return the scale for some of the modules."""
        return DeviationScale(self.is_ratio, self.spread[modules])


def told(apart: float, *, is_signed: bool = False) -> str:
    """Return a distance in words: ``×2.1``, ``÷4.0``, ``+2.5 spreads``; a dash for NaN.

    Examples
    --------
    >>> told(0.301), told(-0.602), told(2.5), told(float("nan")), told(float("inf"))
    ('×2.0', '÷4.0', '×316', '–', '×∞')
    >>> told(-2.5, is_signed=True)
    '-2.5 spreads'
    """
    if np.isnan(apart):
        return "–"
    if is_signed:
        return f"{apart:+.3g} spreads"
    sign = "×" if apart >= 0 else "÷"
    if np.isinf(apart):
        return f"{sign}∞"
    times = 10 ** abs(apart)
    return f"{sign}{times:.1f}" if times < 100 else f"{sign}{times:.3g}"


def scale_of(this: Doubles, others: Doubles, *, signed: bool) -> DeviationScale:
    """Return the scale of values (module, row) and others (run, module, row).

    With ``signed`` differences are taken.
    """
    if not signed:
        return DeviationScale(True, np.ones((len(this), 1)))
    return DeviationScale(False, _spread(np.concatenate([*others], axis=1), this))


def apart(this: Doubles, other: Doubles) -> Doubles:
    """Return the distance of values from `placed`; 0 if both are equal."""
    with np.errstate(invalid="ignore"):
        return np.where(this == other, 0.0, this - other)


def is_signed(*values: Doubles) -> bool:
    """Return whether ratios of such values are meaningless.

    Examples
    --------
    >>> is_signed(np.array([1.0, -1.0])), is_signed(np.arange(100.0)), is_signed(np.zeros(3))
    (True, False, True)
    """
    finite = np.concatenate([np.empty(0), *(one[np.isfinite(one)] for one in values)])
    if not len(finite):
        return False
    return bool((finite < 0).any() or (finite == 0).mean() > MOST_ZEROS)


def smoothed(values: Doubles, rows: int) -> Doubles:
    """Return the running median of a window of rows, half of them before each row, without NaN.

    It follows a step at once, and a single wild row moves it not at all.

    Examples
    --------
    >>> smoothed(np.array([[0.0, 0.0, 9.0, 0.0, 0.0, 5.0, 5.0, 5.0]]), 3).tolist()
    [[0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 5.0]]
    """
    half = rows // 2
    if half == 0 or values.shape[1] == 0:
        return values
    padded = np.pad(values, ((0, 0), (half, half)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=1)
    return np.where(np.isnan(values), np.nan, _median(windows))


def _median(windows: Doubles) -> Doubles:
    """Return the median along the last axis without NaN; infinities are ordinary."""
    ordered = np.sort(windows, axis=-1)  # what is missing comes last
    count = np.maximum((~np.isnan(ordered)).sum(axis=-1, keepdims=True), 1)
    low = np.take_along_axis(ordered, (count - 1) // 2, axis=-1)[..., 0]
    high = np.take_along_axis(ordered, count // 2, axis=-1)[..., 0]
    with np.errstate(invalid="ignore"):
        return np.where(low == high, low, (low + high) / 2)


def _spread(others: Doubles, this: Doubles) -> Doubles:
    """Return standard deviations over the rows (module, 1), above 0."""
    own = _deviation(others)
    wider = (float(_deviation(one.reshape(1, -1))[0, 0]) for one in (others, this))
    fallback = next((one for one in wider if one > 0), 1.0)
    return np.where(own > 0, own, fallback)


def _deviation(values: Doubles) -> Doubles:
    """Return the deviation of finite values in each row, (row, 1)."""
    finite = np.isfinite(values)
    n = np.maximum(finite.sum(axis=1, keepdims=True), 1)
    mean = np.where(finite, values, 0.0).sum(axis=1, keepdims=True) / n
    squares = np.where(finite, values - mean, 0.0) ** 2
    return np.asarray(np.sqrt(squares.sum(axis=1, keepdims=True) / n))
