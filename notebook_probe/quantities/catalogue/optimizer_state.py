"""Quantities of the optimizer: its options, its moments, the steps they allow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from notebook_probe.quantities.catalogue.quantiles import LEVELS, QUANTILES, Sample, Vector, sample
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.arrays import components
from notebook_probe.quantities.reduce.stat import Number, Stat
from notebook_probe.quantities.reduce.vectors import length

__all__ = [
    "AmpSkipped",
    "Scaler",
    "adam_update_rms",
    "amp_scale",
    "effective_lr_quantiles",
    "grad_below_eps_fraction",
    "lr",
    "moment_ratio",
    "momentum",
    "weight_decay",
]


@quantity(source="definition", question=questions.RATE)
def lr(group_lr_largest: Stat) -> float:
    """Largest learning rate of the parameters below the module, ``max lr``, as this step used it.

    At a parameter's path (``"fc1.bias"``) it is the rate of its group. A schedule shows here as
    applied; a rate that stays where a schedule should move it was never passed to the optimizer.
    Missing where no optimizer owns a parameter, or where it has no such option.

    Warnings
    --------
    Adaptive optimizers divide it by the size of the gradients: see ``effective_lr_quantiles``.
    """
    return group_lr_largest.largest


@quantity(source="definition", question=questions.RATE)
def weight_decay(group_weight_decay_largest: Stat) -> float:
    """Largest weight decay of the parameters below the module, ``max weight_decay``.

    Biases and the gains of normalisation are often in a group without decay: look at their own
    paths (``"fc1.bias"``). Missing where no optimizer with such an option owns a parameter.

    Warnings
    --------
    ``Adam`` adds it to the gradient, ``AdamW`` shrinks the weight by ``lr * weight_decay``: the
    same number decays differently.
    """
    return group_weight_decay_largest.largest


@quantity(source="definition", question=questions.RATE)
def momentum(group_momentum_largest: Stat) -> float:
    """Largest momentum of the parameters below the module, ``max momentum``.

    Share of the old direction that a step keeps: about ``1 / (1 - momentum)`` steps are averaged.
    For an optimizer with ``betas`` it is the first of them. Missing if there is no momentum.

    Warnings
    --------
    With SGD the steps add up: the rate that acts is ``lr / (1 - momentum)``. Adam's are averaged.
    """
    return group_momentum_largest.largest


@quantity(source="https://arxiv.org/abs/2304.13013", question=questions.SPIKE, usual=1.0)
def adam_update_rms(
    grad: Tensor,
    state_exp_avg_sq: Tensor,
    state_step: Tensor,
    group_betas: tuple[float, float],
    group_eps: float,
) -> Tensor:
    """Surprise of the gradient, ``RMS_t = sqrt(mean(g^2 / max(v, eps^2)))``, with Adam's own ``v``.

    ``v`` is the second moment after the step, without its bias: ``exp_avg_sq / (1 - beta_2^t)``.
    Near 1 the gradient is as large as Adam expects. Above 2.3 the second moment lags behind, steps
    are too large, and a spike of the loss often follows some steps later. Missing without Adam's
    state.

    Warnings
    --------
    Large values in the first few steps after a change of data or rate are no news. It is measured
    for each weight: a spike of one weight, often the embedding, disappears in an average over all.
    """
    gradient = components(grad)
    usual = _unbiased(state_exp_avg_sq, state_step, group_betas[1]).sqrt_().clamp_(min=group_eps)
    # The buffer of the denominator takes the quotient: no third tensor as large as the weight.
    return length(torch.div(gradient, usual, out=usual)) / math.sqrt(gradient.numel() or math.nan)


@quantity(source="definition", question=questions.NOISE)
def moment_ratio(
    state_exp_avg: Tensor,
    state_exp_avg_sq: Tensor,
    state_step: Tensor,
    group_betas: tuple[float, float],
) -> Tensor:
    """Agreement of gradients, ``||m||_2 / ||sqrt(v)||_2``, of Adam's moments without bias.

    Near 1 they point the same way step after step, near 0 they are noise round zero, which averages
    out. Missing without Adam's state, and for a weight that has never had a gradient.

    Warnings
    --------
    In the first steps there is little to average, and it begins at 1.
    """
    first = length(components(state_exp_avg)) / _begun(state_step, group_betas[0])
    second = components(state_exp_avg_sq).sum(dtype=torch.float64)
    # Squares are summed in float64, as float32 loses the many small ones.
    return first / (second / _begun(state_step, group_betas[1])).sqrt()


@quantity(source="https://arxiv.org/abs/2309.14322", question=questions.RANGE, bounds=(0, 1))
def grad_below_eps_fraction(grad: Tensor, group_eps: float) -> Tensor:
    """Share of the gradient that the optimizer's ``eps`` drowns, ``#(|g| < eps) / n``.

    Adam divides by ``sqrt(v) + eps``: where gradients are smaller than ``eps`` it no longer makes
    up for their size, and learning slows down. Rising towards 1, as it does in large models late in
    training, it asks for a smaller ``eps``. Missing for an optimizer without one.

    Warnings
    --------
    Exact zeros count, such as the rows of an embedding that the batch did not use.
    """
    sizes = components(grad).abs()
    return (sizes < group_eps).count_nonzero() / (sizes.numel() or math.nan)


@dataclass(slots=True)
class Scaler:
    """State of a gradient scaler when an optimizer stepped, before its own update."""

    scale: Number
    n_clean: Number
    """Updates without an overflow since the scale was changed last."""
    n_overflows: Number
    """Number of the optimizers that stepped and applied nothing."""
    growth: float
    backoff: float
    interval: int

    def next(self) -> tuple[float, float]:
        """Return its scale and its clean updates after the step, if the next is not skipped."""
        # The rule of torch.amp.GradScaler: back off after an overflow, grow after an interval
        # without.
        scale, n_clean = float(self.scale), float(self.n_clean) + 1
        if self.n_overflows:
            return scale * self.backoff, 0.0
        return (scale * self.growth, 0.0) if n_clean == self.interval else (scale, n_clean)

    def n_skipped(self, expected: tuple[float, float]) -> int:
        """Return how often the scale has backed off from the expected one."""
        change = float(self.scale) / expected[0]
        if self.n_clean or not 0 < change < 1:
            return 0
        # The scale is a power of the backoff apart, if updates were skipped between two steps.
        times = math.log(change, self.backoff)
        return round(times) if math.isclose(times, round(times), rel_tol=1e-6) else 0


@quantity(source="definition", question=questions.RANGE)
def amp_scale(scaler: Scaler) -> float:
    """Factor on the loss while gradients were computed in half precision, ``scale``.

    Scale of the gradient scaler that called the optimizer, as this step used it. It doubles while
    nothing overflows and is halved by every overflow. If it falls again and again, some gradient is
    infinite at any scale. Missing without a scaler.

    Warnings
    --------
    The scaler is found as it calls ``optimizer.step``: one that is not torch's is not seen.
    """
    return float(scaler.scale)


@window_quantity(source="definition", question=questions.RANGE, combine="sum")
class AmpSkipped:
    """Updates a gradient scaler skipped for an overflow, ``#(skipped)`` since the last due step.

    0 or 1 at every step as a rule. One in some hundreds is how a scaler finds its scale; in a row
    they mean that something is infinite. The skipped batch is part of no step:
    ``discarded_backwards`` of the next one counts it. Missing without a scaler.

    Warnings
    --------
    Derived from the scale, which falls with every skipped update: updates skipped before the first
    measured step are not counted.
    """

    def __init__(self) -> None:
        self.expected: tuple[float, float] | None = None

    def reset(self) -> None:
        self.n: int | None = None

    def begin_late(self) -> None:
        """Do nothing: updates skipped before the first step are unknown, as usual."""

    def update(self, scaler: Scaler) -> None:
        skipped = scaler.n_skipped(self.expected) if self.expected is not None else 0
        self.n = (self.n or 0) + skipped + bool(scaler.n_overflows)
        self.expected = scaler.next()

    def compute(self) -> int | None:
        return self.n


@quantity(axis=QUANTILES, source="definition", question=questions.RATE, cost="sort")
def effective_lr_quantiles(
    state_exp_avg_sq: Tensor,
    state_step: Tensor,
    group_lr: float,
    group_betas: tuple[float, float],
    group_eps: float,
) -> Tensor | Vector:
    """Rates that Adam really applies, ``quantiles of lr / (sqrt(v) + eps)`` over the weight.

    ``v`` is the second moment without its bias. The wider the quantiles, the more the optimizer
    treats weights of one layer differently; a top one near ``lr / eps`` belongs to weights that
    hardly ever have a gradient, and will leap when they do.

    Warnings
    --------
    Of a large weight they are of 65536 elements.
    """
    some = sample(components(state_exp_avg_sq)).values
    rates = group_lr / (_unbiased(some, state_step, group_betas[1]).sqrt_() + group_eps)
    if rates.is_cpu or not len(rates):
        return Sample(len(rates), rates).quantiles(np.array(LEVELS))
    return _quantiles_on_device(rates)


def _quantiles_on_device(values: Tensor) -> Tensor:
    """Return quantiles without copying the levels, which would wait for the device."""
    ordered = values.sort().values
    ranks = [level * (len(ordered) - 1) for level in LEVELS]
    found = [ordered[int(rank)].lerp(ordered[math.ceil(rank)], rank % 1) for rank in ranks]
    return torch.stack(found) + 0 * ordered[-1]  # where NaN is sorted to


def _unbiased(average: Tensor, step: Tensor, beta: float) -> Tensor:
    """A running average without the bias of its beginning at zero; a copy."""
    return components(average) / _begun(step, beta)


def _begun(step: Tensor, beta: float) -> Tensor | float:
    """Return the sum of the weights of a running average that began at zero."""
    # float() of a tensor on a device would wait for the device.
    return 1.0 - beta ** (float(step) if step.is_cpu else step.double())
