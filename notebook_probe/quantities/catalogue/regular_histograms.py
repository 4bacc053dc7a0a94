"""Histograms of a parameter between its own extremes, as MindSpore's SummaryCollector draws them.

The number of bins follows the number of finite elements; ``weight_min`` and ``weight_max`` are
where the first begins and the last ends.
"""

from __future__ import annotations

import math

from torch import Tensor

from notebook_probe.axis import Axis
from notebook_probe.errors import QuantityError
from notebook_probe.quantities.catalogue.equal_bins import MOST_BINS, Extremes
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.stat import Number

__all__ = [
    "n_weight_nan",
    "n_weight_neginf",
    "n_weight_posinf",
    "param_histogram",
    "weight_max",
    "weight_min",
    "weight_sum",
]

REGULAR = Axis("regular_bin", {"regular_bin": tuple(map(float, range(MOST_BINS)))}, group="regular")


@quantity(
    axis=REGULAR,
    aliases=("histogram_regular",),
    combine="last",
    source="MindSpore SummaryCollector",
    question=questions.LEARNING,
    cost="sort",
)
def param_histogram(weight_equal_bins: Extremes) -> Tensor:
    """Counts of the weights in equal bins between the extremes, ``#(e_i <= w < e_(i+1))``.

    ``e_i = min + i (max - min) / k``, the last bin closed, over the finite elements; ``k`` is 2 up
    to 5 of them, 3 up to 10, ``n // 10 + 1`` up to 880, then 90. Entries beyond ``k`` are NaN. The
    edges follow from `weight_min` and `weight_max`; if these are equal, the edges are 0.5 away on
    either side.

    Warnings
    --------
    The bins move with the weights: compare shapes, not counts. `weight_histogram` has bins that
    stay. For a module with several weights it shows the last: attach it to parameters by name.
    """
    if weight_equal_bins.bins is None:
        raise QuantityError("param_histogram: extremes that were measured without their bins")
    return weight_equal_bins.bins


def _known(value: Number) -> float:
    """Missing where no element is finite."""
    found = float(value)
    return found if math.isfinite(found) else math.nan


@quantity(source="MindSpore SummaryCollector", question=questions.LEARNING)
def weight_min(weight_extremes: Extremes) -> float:
    """Smallest weight, ``min W`` of the finite ones; where `param_histogram` begins.

    Together with `weight_max` it is the range of the weights. Missing where none is finite.

    Warnings
    --------
    A single element sets it.
    """
    return _known(weight_extremes.low)


@quantity(source="MindSpore SummaryCollector", question=questions.LEARNING)
def weight_max(weight_extremes: Extremes) -> float:
    """Largest weight, ``max W`` of the finite ones; where `param_histogram` ends.

    With its sign, unlike `weight_abs_max`. Missing where none is finite.

    Warnings
    --------
    A single element sets it.
    """
    return _known(weight_extremes.high)


@quantity(source="MindSpore SummaryCollector", question=questions.LEARNING)
def weight_sum(weight_extremes: Extremes) -> Tensor:
    """Sum of the weights, ``sum W`` of the finite ones.

    Divided by their number, it is the mean of `param_histogram`.

    Warnings
    --------
    Weights of either sign cancel: near 0 it does not say that they are small.
    """
    return weight_extremes.total


@quantity(source="MindSpore SummaryCollector", question=questions.RANGE)
def n_weight_nan(weight_extremes: Extremes) -> Tensor:
    """Number of weights that are NaN, ``#(w = NaN)``; `param_histogram` leaves them out.

    Anything but 0 means that training is lost.

    Warnings
    --------
    It is the weight that this step's forward used: the previous step broke it.
    """
    return weight_extremes.counts[0]


@quantity(source="MindSpore SummaryCollector", question=questions.RANGE)
def n_weight_posinf(weight_extremes: Extremes) -> Tensor:
    """Number of weights that are infinite, ``#(w = inf)``; `param_histogram` leaves them out.

    Usual in masks that are kept as parameters, and nowhere else.

    Warnings
    --------
    Infinities seldom last: the next forward makes NaN of them.
    """
    return weight_extremes.counts[1]


@quantity(source="MindSpore SummaryCollector", question=questions.RANGE)
def n_weight_neginf(weight_extremes: Extremes) -> Tensor:
    """Number of weights that are minus infinity, ``#(w = -inf)``; not in `param_histogram`.

    Usual in masks that are kept as parameters, and nowhere else.

    Warnings
    --------
    Infinities seldom last: the next forward makes NaN of them.
    """
    return weight_extremes.counts[2]
