"""Quantiles of what enters and leaves a module, and how far they move between two looks.

For a large tensor they are computed from some of its elements, at fixed places; `n_sampled` is
their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from notebook_probe.axis import Axis
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.samples import sampled_rows

__all__ = [
    "QUANTILES",
    "DistributionShift",
    "Sample",
    "input_quantiles",
    "n_sampled",
    "output_quantiles",
    "sample",
]

MOST = 1 << 16
"""Elements that are kept of a step: they tell a quantile to a fifth of a per cent of the ranks."""

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
QUANTILES = Axis("quantile", {"quantile": LEVELS}, group="quantiles")

FINE = (np.arange(256) + 0.5) / 256
"""Levels at which two distributions are compared."""

Vector: TypeAlias = npt.NDArray[np.float64]


@dataclass(slots=True)
class Sample:
    """Sample of the elements of one or many tensors, each with the same probability; or all."""

    n: int
    """Number of elements the sample is from."""
    values: Tensor
    """Flat, real and floating."""
    _ordered: npt.NDArray[Any] | None = None

    def merge(self, other: Sample) -> Sample:
        """The sample of both together, of which none is kept more often."""
        pieces = [self, other]
        # Sampled at one rate, or elements of the smaller tensor would count more often.
        rate = min((len(one.values) / one.n for one in pieces if one.n), default=1.0)
        joined = torch.cat([sampled_rows(one.values, round(rate * one.n)) for one in pieces])
        return Sample(self.n + other.n, sampled_rows(joined, MOST))

    def quantiles(self, levels: Vector) -> Vector:
        """Interpolate linearly between ranks; all NaN for no elements, or where one is NaN."""
        if self._ordered is None:
            self._ordered = np.sort(self.values.cpu().numpy())
        ordered = self._ordered
        # np.sort puts NaN last.
        if not len(ordered) or np.isnan(ordered[-1]):
            return np.full(len(levels), math.nan)
        ranks = levels * (len(ordered) - 1)
        low, high = (
            ordered[place(ranks).astype(int)].astype(float) for place in (np.floor, np.ceil)
        )
        share = ranks % 1
        with np.errstate(invalid="ignore"):  # between two infinities
            # Equal neighbors as they are: an infinity times a share of 0 would be NaN.
            return np.where(low == high, low, low * (1 - share) + high * share)


@reduction("sample", cost="sort")
def sample(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Sample:
    """Keep 65536 elements of a tensor, or all if there are no more.

    Examples
    --------
    >>> sample(torch.arange(5.0)).quantiles(np.array([0.0, 0.5, 0.6]))
    array([0. , 2. , 2.4])
    """
    flat = readable(tensor).reshape(-1)
    kept = sampled_rows(flat, MOST)
    return Sample(len(flat), kept.clone() if kept is flat else kept)


@quantity(axis=QUANTILES, aliases=("quantiles",), source="definition", question=questions.SIGNAL)
def output_quantiles(output_sample: Sample) -> Vector:
    """Quantiles of the outputs at 1, 5, 25, 50, 75, 95 and 99 %, ``F^-1(q)``.

    The shape of the distribution in seven lines: they spread when activations explode, close
    together when they vanish, and part unevenly when few elements grow. Missing where one is NaN.

    Warnings
    --------
    Of large outputs they are of 65536 elements; `n_sampled` says of how many.
    """
    return output_sample.quantiles(np.array(LEVELS))


@quantity(axis=QUANTILES, source="definition", question=questions.SIGNAL)
def input_quantiles(input_sample: Sample) -> Vector:
    """Quantiles of the inputs at 1, 5, 25, 50, 75, 95 and 99 %, ``F^-1(q)``.

    For the first module they describe the data as the network gets it. Missing where one is NaN.

    Warnings
    --------
    Of large inputs they are of 65536 elements.
    """
    return input_sample.quantiles(np.array(LEVELS))


@quantity(source="definition", question=questions.SIGNAL)
def n_sampled(output_sample: Sample) -> float:
    """Number of outputs that `output_quantiles` is of, ``min(n, 65536)``.

    `distribution_shift` is computed from as many elements. With ``m`` elements the level of a
    quantile is known to about ``0.5 / sqrt(m)``.

    Warnings
    --------
    Elements of one sample are not independent: it is no number of samples in the sense of
    statistics.
    """
    return float(len(output_sample.values))


@window_quantity(samples="due", source="definition", question=questions.SIGNAL)
class DistributionShift:
    """Distance of the outputs from those of the last due step, ``mean_q |F_t^-1(q) - F_s^-1(q)|``.

    The Wasserstein distance between the distributions of their elements, in the units of the
    output, by 256 quantiles. If it falls, the inputs of the next layer are getting steady; a jump
    is a change of the data or an update that was too large. Compare it with `output_std` to see
    whether it matters.

    Warnings
    --------
    Also between two batches of one network it is not zero: compare with its usual size.
    """

    _before: Vector | None = None
    _now: Vector | None = None

    def reset(self) -> None:
        """The last due step stays: the next one is compared with it."""
        self._before, self._now = self._before if self._now is None else self._now, None

    def begin_late(self) -> None:
        """Do nothing: the first due step has no value, as usual."""

    def update(self, output_sample: Sample) -> None:
        self._now = output_sample.quantiles(FINE)

    def compute(self) -> float | None:
        if self._before is None or self._now is None:
            return None
        with np.errstate(invalid="ignore"):  # infinite in both
            return float(np.abs(self._now - self._before).mean())
