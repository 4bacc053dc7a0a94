"""Noise of the gradient of a step, from the micro-batches it was accumulated from.

Where the papers compare single samples these compare micro-batches: what one backward adds to the
gradient, ``k`` of them in a step. All are of every parameter below the module: at the root of the
whole gradient, as in the papers. Scaled losses, and such as are divided by ``k``, give the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.micro_batches import MicroBatchGradients, added
from notebook_probe.quantities.reduce.stat import Stat, root
from notebook_probe.quantities.reduce.vectors import dot

__all__ = ["GradientNoiseScale", "InnerProductTest", "OrthogonalityTest", "norm_test"]


@dataclass(frozen=True, slots=True)
class _Micro:
    """Signal and noise in the micro-batches of a step; batch sizes count micro-batches."""

    n: float
    one: float
    """Mean of ``||g||^2`` over the micro-batches."""
    all: float
    """``||g||^2`` of their mean."""

    @property
    def noise(self) -> float:
        """Unbiased estimate of ``tr(S)``, the variance of one micro-batch's gradient."""
        return (self.one - self.all) / (1 - 1 / self.n)

    @property
    def signal(self) -> float:
        """Unbiased estimate of ``||G||^2``, of the true gradient."""
        return (self.n * self.all - self.one) / (self.n - 1)


def _micro(grad_micro: Stat, grad_raw: Stat) -> _Micro | None:
    """Return None for fewer than two micro-batches, and broken or partly missing gradients.

    Gradients that were scaled, or divided by the number of micro-batches, give the same ratios.
    """
    # A remainder shows that some micro-batch gave a parameter no gradient.
    n, left = divmod(grad_micro.n, grad_raw.n or math.nan)
    if not n >= 2 or left or not math.isfinite(grad_micro.sumsq + grad_raw.sumsq):
        return None
    # grad_raw is the sum over micro-batches, so that the square of its mean is 1 / n^2 of it.
    return _Micro(n, grad_micro.sumsq / n, grad_raw.sumsq / n**2)


FORGOTTEN = 135
"""Due steps after which less than a thousandth of the running means is of those before."""


@window_quantity(
    units="micro-batch",
    samples="due",
    source="https://arxiv.org/abs/1812.06162",
    question=questions.NOISE,
)
class GradientNoiseScale:
    """Batch size up to which larger batches pay, ``tr(S) / ||G||^2``, in micro-batches.

    From the micro-batches of an accumulated step, by the norms of their gradients and of the
    mean of all; ``S`` is the covariance of one micro-batch's gradient, ``G`` the true gradient, of
    all parameters below the module. Both are averaged over about the last 20 due steps. Times the
    samples in a micro-batch it is the paper's ``B_simple``: a batch much smaller wastes steps, one
    much larger wastes samples. It usually grows while training. Missing without accumulation, and
    as long as noise hides the gradient.

    Warnings
    --------
    With few micro-batches it is a rough estimate: look at its order of magnitude over many steps.
    """

    DECAY = 0.95

    def __init__(self) -> None:
        self.noise = self.signal = 0.0
        self.n_missing = 0

    def reset(self) -> None:
        """Reset nothing: the running means continue."""

    def begin_late(self) -> None:
        """Give no value until earlier steps would be forgotten."""
        self.n_missing = FORGOTTEN

    def update(self, grad_micro_sumsq: Stat, grad_raw_sumsq: Stat) -> None:
        micro = _micro(grad_micro_sumsq, grad_raw_sumsq)
        if micro is not None:
            # Both are averaged before they are divided, as in the source: ratios of single steps
            # are biased.
            self.noise += (1 - self.DECAY) * (micro.noise - self.noise)
            self.signal += (1 - self.DECAY) * (micro.signal - self.signal)
            self.n_missing = max(0, self.n_missing - 1)

    def compute(self) -> float | None:
        return self.noise / self.signal if self.signal > 0 and not self.n_missing else None


@quantity(source="https://doi.org/10.1007/s10107-012-0572-5", question=questions.NOISE)
def norm_test(grad_micro_sumsq: Stat, grad_raw_sumsq: Stat) -> float:
    """Error of the step's gradient against its length, ``sqrt(tr(S) / k) / ||g||_2``.

    The smallest ``theta`` for which Byrd's norm test holds (eq. 3.9), with the ``k`` micro-batches
    of an accumulated step as samples: ``S`` is their covariance, ``g`` their mean. Well below 1 the
    gradient points where it should; above 1 it is mostly noise, and a larger batch would help. What
    the error of a mean is does not depend on how its samples are grouped, so that it estimates the
    same number as single samples would. Missing without accumulation.

    Warnings
    --------
    The variance is that of a few micro-batches.
    """
    micro = _micro(grad_micro_sumsq, grad_raw_sumsq)
    if micro is None:
        raise UnreadableError("no two micro-batches to compare: one backward, or broken gradients")
    if not micro.all:
        return math.nan
    # The unbiased estimate of the noise may be negative.
    return root(max(0.0, micro.noise) / micro.n / micro.all)


class _Spread(MicroBatchGradients):
    """Spread of the micro-batches' gradients about their mean ``g``: along it, and across it.

    Both by the differences from ``g``, so that nothing cancels where they are nearly alike.
    """

    def shares(self) -> tuple[Tensor, Tensor] | None:
        """Variance of ``g`` along and across itself, in units of ``||g||^2``."""
        k = self.k
        if not k:
            return None
        found = added([_of_parameter(rows) for rows in self.parameters])
        size, off, along = found[0], found[1], found[2:].square().sum() / found[0]
        return along / size / (k * (k - 1)), (off - along) / size / (k * (k - 1))


def _of_parameter(rows: list[Tensor]) -> Tensor:
    """``||g||^2``, ``sum_i ||g_i - g||^2`` and each ``(g_i - g) g``."""
    mean = sum(rows[1:], rows[0]) / len(rows)
    away = [row - mean for row in rows]
    off = added([dot(each, each) for each in away])
    return torch.stack([dot(mean, mean), off, *(dot(each, mean) for each in away)])


@window_quantity(samples="due", source="https://arxiv.org/abs/1710.11258", question=questions.NOISE)
class InnerProductTest(_Spread):
    """Error of the step's gradient along itself, ``sqrt(Var(g_i . g) / k) / ||g||_2^2``.

    The smallest ``theta`` for which the inner product test holds (eq. 2.6), with the ``k``
    micro-batches ``g_i`` of an accumulated step as samples and ``g`` their mean. Below 1 the step
    leads downhill, give or take one standard deviation. Together with `orthogonality_test` it makes
    up `norm_test`: their squares add up to its square. Missing without accumulation, and where some
    parameter has no gradient of some micro-batch.

    Warnings
    --------
    The variance is that of a few micro-batches. The gradient of each is kept until the step is
    over, ``k`` times the memory of the gradients: attach it at the root, and not to every module.
    """

    def compute(self) -> Tensor | None:
        shares = self.shares()
        return None if shares is None else shares[0].sqrt()


@window_quantity(samples="due", source="https://arxiv.org/abs/1710.11258", question=questions.NOISE)
class OrthogonalityTest(_Spread):
    """Error of the step's gradient across itself, ``sqrt(mean_i ||r_i||_2^2 / (k - 1)) / ||g||_2``.

    The smallest ``nu`` for which the orthogonality test holds (eq. 3.3), with the ``k``
    micro-batches of an accumulated step as samples: ``g`` is their mean and ``r_i`` the part of
    each one's gradient at right angles to it, ``g_i - (g_i . g / ||g||^2) g``. It is the tangent of
    the angle by which the step misses its aim, 1 for 45 degrees. With many parameters it is nearly
    all of `norm_test`. Missing where `inner_product_test` is.

    Warnings
    --------
    As of `inner_product_test`.
    """

    def compute(self) -> Tensor | None:
        shares = self.shares()
        # Rounding may leave the difference just below 0.
        return None if shares is None else shares[1].clamp(min=0).sqrt()
