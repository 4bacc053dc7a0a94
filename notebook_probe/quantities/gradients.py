"""Gradients of several layers, of several micro-batches, and before and after clipping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities import questions
from notebook_probe.quantities.arrays import components
from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.stat import Stat, root
from notebook_probe.quantities.vectors import dot, length
from notebook_probe.quantities.window import window_quantity

__all__ = [
    "EarlyStoppingEvidence",
    "GradientNoiseScale",
    "Gsnr",
    "Stiffness",
    "clip_coefficient",
    "grad_depth_slope",
    "norm_test",
]


@quantity(units="1/layer", source="https://arxiv.org/abs/2110.09456", question=questions.SIGNAL)
def grad_depth_slope(each_grad_sumsq: Sequence[Stat | None]) -> float:
    """Decades that gradients gain with every layer on their way back, ``slope of log10 ||g_k||_2``.

    The slope of a line, by least squares, through the gradient norms of the modules below that own
    parameters; ``k`` counts them from the last one. Attached to the root it sums up the network:
    near 0 is healthy, -0.3 means that gradients halve with every layer (they vanish towards the
    input), above 0 they grow (they explode). Missing with fewer than two layers that have a
    gradient; one of zeros is left out.

    Warnings
    --------
    The order is that of definition, and wide layers have larger norms than narrow ones: compare
    steps of one model rather than models. Inputs that grow from layer to layer make up for
    gradients that vanish on their way back: `output_grad_norm` shows these alone.
    """
    layers = enumerate(reversed(each_grad_sumsq))
    known = [(k, one.sumsq) for k, one in layers if one is not None and one.sumsq != 0]
    if len(known) < 2:
        raise UnreadableError("fewer than two layers there have a gradient that is not zero")
    depth, sumsq = np.array(known).T
    with np.errstate(invalid="ignore"):
        away = depth - depth.mean()
        return float(away @ (0.5 * np.log10(sumsq)) / (away @ away))


@quantity(source="definition", question=questions.SPIKE)
def clip_coefficient(grad_sumsq: Stat, grad_raw_sumsq: Stat, loss_scale: float) -> float:
    """What clipping left of the model's gradient, ``||g applied||_2 / ||g accumulated||_2``.

    1 where nothing was clipped, ``c / ||g||`` where the norm was clipped to ``c``. Below 1 in
    nearly every step, the threshold is a second learning rate. A gradient scaler's scale is taken
    out.

    Warnings
    --------
    Whatever else changes gradients between the backward and the step counts too, as the mean over
    processes does.
    """
    raw = root(grad_raw_sumsq.sumsq) / loss_scale
    return root(grad_sumsq.sumsq) / raw if raw else math.nan


@dataclass(frozen=True, slots=True)
class _Micro:
    """What the micro-batches of a step say about the gradient; batch sizes count micro-batches."""

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
    """None of fewer than two micro-batches, of broken gradients, and of such as not all have.

    Gradients that were scaled, or divided by the number of micro-batches, give the same ratios.
    """
    n, left = divmod(grad_micro.n, grad_raw.n or math.nan)
    if not n >= 2 or left or not math.isfinite(grad_micro.sumsq + grad_raw.sumsq):
        return None
    return _Micro(n, grad_micro.sumsq / n, grad_raw.sumsq / n**2)


@window_quantity(
    units="micro-batch",
    samples="due",
    source="https://arxiv.org/abs/1812.06162",
    question=questions.NOISE,
)
class GradientNoiseScale:
    """Batch size up to which larger batches pay, ``tr(S) / ||G||^2``, in micro-batches.

    From the micro-batches of an accumulated step, by the norms of their own gradients and of the
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

    def reset(self) -> None:
        """Running means go on."""

    def update(self, grad_micro_sumsq: Stat, grad_raw_sumsq: Stat) -> None:
        micro = _micro(grad_micro_sumsq, grad_raw_sumsq)
        if micro is not None:
            self.noise += (1 - self.DECAY) * (micro.noise - self.noise)
            self.signal += (1 - self.DECAY) * (micro.signal - self.signal)

    def compute(self) -> float | None:
        return self.noise / self.signal if self.signal > 0 else None


@quantity(source="https://doi.org/10.1007/s10107-012-0572-5", question=questions.NOISE)
def norm_test(grad_micro_sumsq: Stat, grad_raw_sumsq: Stat) -> float:
    """Error of the step's gradient against its length, ``sqrt(tr(S) / k) / ||g||_2``.

    The smallest ``theta`` for which Byrd's norm test holds (eq. 3.9), with the ``k`` micro-batches
    of an accumulated step as samples: ``S`` is their covariance, ``g`` their mean. Well below 1 the
    gradient points where it should; above 1 it is mostly noise, and a larger batch would help.
    Missing without accumulation.

    Warnings
    --------
    The variance is that of a few micro-batches.
    """
    micro = _micro(grad_micro_sumsq, grad_raw_sumsq)
    if micro is None:
        raise UnreadableError("no two micro-batches to compare: one backward, or broken gradients")
    if not micro.all:
        return math.nan
    return root(max(0.0, micro.noise) / micro.n / micro.all)


class _Elements:
    """Mean and spread of each element of a gradient over the micro-batches of a step."""

    def reset(self) -> None:
        self.n = 0
        self.mean: Tensor | None = None
        self.spread: Tensor | None = None

    def update(self, grad_micro: Tensor) -> None:
        gradient = components(grad_micro)
        if self.mean is None or self.spread is None or self.mean.shape != gradient.shape:
            self.n, self.mean, self.spread = 0, gradient.clone(), torch.zeros_like(gradient)
        self.n += 1
        away = gradient - self.mean
        self.mean.add_(away, alpha=1 / self.n)
        self.spread.addcmul_(away, gradient - self.mean)

    def ratio(self) -> Tensor | None:
        """Mean of ``(E g)^2 / Var g`` over the elements that differ between micro-batches."""
        if self.n < 2 or self.mean is None or self.spread is None:
            return None
        differ = self.spread != 0
        ratios = torch.where(differ, self.mean / self.spread.sqrt(), 0)
        return dot(ratios, ratios) * (self.n - 1) / differ.count_nonzero()


@window_quantity(samples="due", source="https://arxiv.org/abs/2001.07384", question=questions.NOISE)
class Gsnr(_Elements):
    """Signal to noise of the weight's gradient, mean over its elements of ``(E g)^2 / Var g``.

    Over the micro-batches of an accumulated step. Large where micro-batches agree, which goes along
    with good generalisation; it falls as the training set is fitted. Elements whose gradient is the
    same in all, such as zero, are left out. Missing without accumulation.

    Warnings
    --------
    Of pure noise it is about ``1 / k`` with ``k`` micro-batches, and a few elements of little
    variance weigh much. It keeps two tensors as large as the weight.
    """

    def compute(self) -> Tensor | None:
        return self.ratio()


@window_quantity(
    samples="due", source="https://arxiv.org/abs/1703.09580", question=questions.PROGRESS
)
class EarlyStoppingEvidence(_Elements):
    """Evidence that the gradient is nothing but noise, ``1 - k * mean((E g)^2 / Var g)``.

    With the ``k`` micro-batches of an accumulated step as samples. Above 0 the mean gradient of the
    weight is no larger than noise alone would make it: there is nothing more to learn from these
    data, and the paper stops without a validation set. Below 0 there is a signal. Missing without
    accumulation.

    Warnings
    --------
    It swings from step to step: look at its course, and at all weights together.
    """

    def compute(self) -> Tensor | None:
        ratio = self.ratio()
        return None if ratio is None else 1 - self.n * ratio


@window_quantity(samples="due", source="https://arxiv.org/abs/1901.09491", question=questions.NOISE)
class Stiffness:
    """Whether micro-batches want the same of the weight, mean ``cos(g_i, g_j)`` over their pairs.

    Above 0 a step for one micro-batch also lowers the loss of another: what is learnt is shared.
    Near 0 they have nothing to do with each other, which is usual late in training. Missing without
    accumulation, and where a micro-batch has no gradient.

    Warnings
    --------
    The larger the micro-batches the larger it is: compare runs with the same ones.
    """

    def reset(self) -> None:
        self.n = 0
        self.total: Tensor | None = None

    def update(self, grad_micro: Tensor) -> None:
        gradient = components(grad_micro)
        direction = gradient / length(gradient)
        self.total = direction if self.total is None else self.total.add_(direction)
        self.n += 1

    def compute(self) -> Tensor | None:
        if self.n < 2 or self.total is None or not self.total.numel():
            return None
        return (dot(self.total, self.total) - self.n) / (self.n * (self.n - 1))
