"""The best value of something so far."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from notebook_probe.checks import is_number

__all__ = ["Best", "Mode"]

Mode: TypeAlias = Literal["min", "max"]


class Best:
    """The least, or the largest, of the values seen; NaN is never it.

    Parameters
    ----------
    mode : "min" or "max"
    min_delta : float
        By how much another must be better.

    Examples
    --------
    >>> best = Best("min", min_delta=0.1)
    >>> [best.is_better(value) for value in (1.0, 0.95, 0.8, float("nan"))]
    [True, False, True, False]
    >>> best.value
    0.8
    """

    def __init__(self, mode: Mode = "min", min_delta: float = 0.0) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode={mode!r}; allowed: 'min', 'max'")
        if not (is_number(min_delta) and 0 <= min_delta < math.inf):
            raise ValueError(f"min_delta={min_delta!r}; allowed: a number from 0")
        self._sign = 1.0 if mode == "min" else -1.0
        self._min_delta = min_delta
        self.value = math.nan

    def is_better(self, value: float) -> bool:
        """Take a value; tell whether it is the best now."""
        # NaN means no value yet.
        found = math.isnan(self.value) or self._sign * (self.value - value) > self._min_delta
        found = found and not math.isnan(value)
        if found:
            self.value = value
        return found
