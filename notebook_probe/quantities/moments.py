"""Mean and standard deviation of inputs and outputs, over all elements of a step."""

from __future__ import annotations

import math

from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.stat import Stat, root

__all__ = ["input_mean", "input_std", "output_mean", "output_std"]


def _std(stat: Stat) -> float:
    return root(stat.spread / (stat.n - 1)) if stat.n > 1 else math.nan


@quantity(source="definition")
def input_mean(input_moments: Stat) -> float:
    """Mean of what comes in, over all elements."""
    return input_moments.mean


@quantity(aliases=("InputStd",), source="Taiyi")
def input_std(input_moments: Stat) -> float:
    """Standard deviation of what comes in, divisor ``n - 1``; missing for one element."""
    return _std(input_moments)


@quantity(source="Glorot & Bengio 2010")
def output_mean(output_moments: Stat) -> float:
    """Mean activation, over all elements of the output."""
    return output_moments.mean


@quantity(source="Glorot & Bengio 2010")
def output_std(output_moments: Stat) -> float:
    """Standard deviation of the activation, divisor ``n - 1``; missing for one element."""
    return _std(output_moments)
