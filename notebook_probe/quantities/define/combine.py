"""How the values of several calls or tensors of one step become one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

__all__ = ["COMBINE"]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _largest(values: Sequence[float]) -> float:
    return max(values) if all(v == v for v in values) else math.nan  # NaN != NaN


def _smallest(values: Sequence[float]) -> float:
    return min(values) if all(v == v for v in values) else math.nan


COMBINE: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": _mean,
    "sum": sum,
    "max": _largest,
    "min": _smallest,
    "last": lambda values: values[-1],
    "rss": lambda values: math.sqrt(sum(value * value for value in values)),
}
"""Mean, sum, extrema (NaN if one is), the last, and the root of summed squares for norms."""
