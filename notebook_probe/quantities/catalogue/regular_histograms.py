"""Histograms of a parameter between its own extremes, as MindSpore's SummaryCollector draws them.

The number of bins follows the number of finite elements; ``weight_min`` and ``weight_max`` are
where the first begins and the last ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from notebook_probe.axis import Axis
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.stat import Number

__all__ = [
    "Extremes",
    "extremes",
    "n_weight_nan",
    "n_weight_neginf",
    "n_weight_posinf",
    "param_histogram",
    "weight_max",
    "weight_min",
    "weight_sum",
]

Doubles = npt.NDArray[np.float64]

MOST_BINS = 90
REGULAR = Axis("regular_bin", {"regular_bin": tuple(map(float, range(MOST_BINS)))}, group="regular")

FEW = ((0, 0), (5, 2), (10, 3))
"""Of so many elements at most, so many bins."""
MANY = 4096
"""Above so many elements, which have as many bins as there can be, passes take more than calls."""
MARGIN = 1e-4
"""Of a bin: nearer to an edge a quotient of singles may be on its wrong side; it errs by 2e-5."""
TINY, HUGE = 1e-30, 1e30
"""Between these a bin's width, and one over it, are singles without loss."""

PIECE = 1 << 18
"""Elements counted at a time, in a dozen passes that find them in the cache."""


@quantity(
    axis=REGULAR,
    aliases=("histogram_regular",),
    combine="last",
    source="MindSpore SummaryCollector",
    question=questions.LEARNING,
    cost="sort",
)
def param_histogram(weight: Tensor) -> Tensor:
    """Counts of the weights in equal bins between the extremes, ``#(e_i <= w < e_(i+1))``.

    ``e_i = min + i (max - min) / k``, the last bin closed, over the finite elements; ``k`` is 2 up
    to 5 of them, 3 up to 10, ``n // 10 + 1`` up to 880, then 90. What is beyond ``k`` is NaN. The
    edges are told by `weight_min` and `weight_max`; where these are equal they stand 0.5 apart
    on either side.

    Warnings
    --------
    The bins move with the weights: compare shapes, not counts. `weight_histogram` has bins that
    stay. Of a module with several weights it is of the last: attach it to parameters by name.
    """
    values = readable(weight).reshape(-1)
    if values.is_cpu and values.dtype == torch.float32 and len(values) > MANY:
        ends = tuple(float(end) for end in values.aminmax())
        if all(map(math.isfinite, ends)) and TINY < (ends[1] - ends[0]) / MOST_BINS < HUGE:
            return _counted_fast(values, *ends)
    found = extremes(weight)
    if values.is_cpu:
        return _counted_here(values, found)
    low, high = (
        torch.where(found.low == found.high, end + shift, end)
        for end, shift in ((found.low, -0.5), (found.high, 0.5))
    )
    n_bins = _n_bins(values.numel() - found.counts.sum())
    counts = torch.zeros(MOST_BINS + 1, dtype=torch.float64, device=values.device)
    for piece in values.split(PIECE):
        places = _places(piece.double(), low, (high - low) / n_bins, n_bins)
        counts.index_add_(0, places, torch.ones_like(places, dtype=torch.float64))
    unused = torch.arange(MOST_BINS, device=values.device) >= n_bins
    return counts[:-1].masked_fill(unused, torch.nan)


def _counted_here(values: Tensor, found: Extremes) -> Tensor:
    """On the host, in a few calls: most parameters are small, and calls are what they take."""
    kept = values.double().numpy()
    n = len(kept) - int(found.counts.sum())
    if n < len(kept):
        kept = kept[np.isfinite(kept)]
    low, high = float(found.low), float(found.high)
    ends = (low - 0.5, high + 0.5) if low == high else (low, high)
    counts, n_bins = np.full(MOST_BINS, np.nan), _n_bins_of(n)
    counts[:n_bins] = _by_edges(kept, *ends, n_bins)
    return torch.from_numpy(counts)


def _by_edges(values: Doubles, low: float, high: float, n_bins: int) -> npt.NDArray[np.int64]:
    """Counts of finite values, each compared with the edges themselves."""
    inner = low + np.arange(1, n_bins) * ((high - low) / max(n_bins, 1))
    return np.bincount(np.searchsorted(inner, values, side="right"), minlength=n_bins)


def _counted_fast(values: Tensor, low: float, high: float) -> Tensor:
    """All finite and of one precision: by the quotient, and by the edges where that may mislead."""
    counts, close = torch.zeros(MOST_BINS, dtype=torch.int64), []
    for piece in values.split(PIECE):
        quotient = (piece - low).mul_(MOST_BINS / (high - low))
        places = quotient.to(torch.int32).to(torch.uint8)
        from_middle = quotient.frac_().sub_(0.5).abs_().numpy()
        near = torch.from_numpy(np.flatnonzero(from_middle > 0.5 - MARGIN))
        places[near] = MOST_BINS
        counts += torch.bincount(places, minlength=MOST_BINS + 1)[:-1]
        close.append(piece[near])
    by_edges = _by_edges(torch.cat(close).double().numpy(), low, high, MOST_BINS)
    return (counts + torch.from_numpy(by_edges)).double()


def _places(values: Tensor, low: Tensor, width: Tensor, n_bins: Tensor) -> Tensor:
    """The bin of each value by the edges, not by the quotient; one beyond all of what is none."""
    finite = values.isfinite()
    place = ((values - low) / width).nan_to_num(0, 0, 0).floor()
    place = place - (values < low + place * width).double()
    place = place + (values >= low + (place + 1) * width).double()
    place = place.clamp(min=0).minimum(n_bins - 1)
    return place.where(finite, MOST_BINS).long()


def _n_bins(n: Tensor) -> Tensor:
    """By the rule of MindInsight; 0 of nothing."""
    bins = (n // 10 + 1).clamp(max=MOST_BINS)
    for most, few in reversed(FEW):
        bins = torch.where(n <= most, few, bins)
    return bins


def _n_bins_of(n: int) -> int:
    """The same of a number that the host knows."""
    return next((few for most, few in FEW if n <= most), min(n // 10 + 1, MOST_BINS))


@dataclass(slots=True)
class Extremes:
    """Smallest, largest and sum of the finite elements, and what else there is."""

    low: Tensor
    high: Tensor
    total: Tensor
    counts: Tensor
    """Of NaN, of infinity and of minus infinity."""

    def merge(self, other: Extremes) -> Extremes:
        """Of both together."""
        return Extremes(
            torch.minimum(self.low, other.low),
            torch.maximum(self.high, other.high),
            self.total + other.total,
            self.counts + other.counts,
        )


@reduction("extremes")
def extremes(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Extremes:
    """Measure the finite elements of a tensor, and count the others.

    Examples
    --------
    >>> extremes(torch.tensor([1.0, 5.0, torch.inf])).high
    tensor(5., dtype=torch.float64)
    """
    values = readable(tensor).reshape(-1)
    if values.is_cpu and len(values):
        low, high = values.aminmax()
        if math.isfinite(low) and math.isfinite(high):  # as all between them are
            # numpy's: torch's own converts element by element, which takes twice as long
            total = torch.tensor(values.numpy().sum(dtype=np.float64))
            return Extremes(low.double(), high.double(), total, torch.zeros(3, dtype=torch.int64))
    return _some_finite(values)


def _some_finite(values: Tensor) -> Extremes:
    """The slow path, which never waits for a device; the extremes of nothing are infinite."""
    finite = values.isfinite()
    low = values.where(finite, math.inf).amin() if len(values) else values.new_tensor(math.inf)
    high = values.where(finite, -math.inf).amax() if len(values) else -low
    total = values.where(finite, 0.0).sum(dtype=torch.float64)
    others = (values.isnan(), values == math.inf, values == -math.inf)
    counts = torch.stack([other.sum() for other in others])
    return Extremes(low.double(), high.double(), total, counts)


def _known(value: Number) -> float:
    """Missing where no element is finite."""
    found = float(value)
    return found if math.isfinite(found) else math.nan


@quantity(source="MindSpore SummaryCollector", question=questions.LEARNING)
def weight_min(weight_extremes: Extremes) -> float:
    """Smallest weight, ``min W`` of the finite ones; where `param_histogram` begins.

    Together with `weight_max` the range in which the weights lie. Missing where none is finite.

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

    Over their number, the mean about which `param_histogram` lies.

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
    It is the weight that this step's forward used: the step that broke it is the one before.
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
