"""What the optimizer makes of a gradient: its options, its moments, the steps they allow."""

from __future__ import annotations

import math

from torch import Tensor

from notebook_probe.axis import Axis
from notebook_probe.quantities import questions
from notebook_probe.quantities.arrays import wide
from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.stat import Stat

__all__ = [
    "adam_update_rms",
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

    Of a parameter's path (``"fc1.bias"``) it is the rate of its group. A schedule shows here as it
    was applied; a rate that stays where a schedule should move it was never told to the optimizer.
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
    Of an optimizer with ``betas`` it is the first of them. Missing where there is none.

    Warnings
    --------
    With SGD the steps add up: the rate that acts is ``lr / (1 - momentum)``. Adam's are averaged.
    """
    return group_momentum_largest.largest


@quantity(source="https://arxiv.org/abs/2304.13013", question=questions.SPIKE)
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
    Large values in the first few steps after a change of data or rate are no news. It is told for
    each weight: a spike of one, often the embedding, disappears in an average over all.
    """
    second = _unbiased(state_exp_avg_sq, state_step, group_betas[1])
    squares = wide(grad).double().square()
    return (squares / second.clamp(min=group_eps**2)).mean().sqrt()


@quantity(source="definition", question=questions.NOISE)
def moment_ratio(
    state_exp_avg: Tensor,
    state_exp_avg_sq: Tensor,
    state_step: Tensor,
    group_betas: tuple[float, float],
) -> Tensor:
    """How much gradients agree, ``||m||_2 / ||sqrt(v)||_2``, of Adam's moments without bias.

    Near 1 they point the same way step after step, near 0 they are noise round zero, which averages
    out. Missing without Adam's state, and for a weight that has never had a gradient.

    Warnings
    --------
    In the first steps there is little to average, and it begins at 1.
    """
    first = _unbiased(state_exp_avg, state_step, group_betas[0])
    return first.norm() / _unbiased(state_exp_avg_sq, state_step, group_betas[1]).sum().sqrt()


@quantity(source="https://arxiv.org/abs/2309.14322", question=questions.RANGE)
def grad_below_eps_fraction(grad: Tensor, group_eps: float) -> Tensor:
    """Share of the gradient that the optimizer's ``eps`` drowns, ``#(|g| < eps) / n``.

    Adam divides by ``sqrt(v) + eps``: where gradients are smaller than ``eps`` it no longer makes
    up for their size, and learning slows down. Rising towards 1, as it does in large models late in
    training, it asks for a smaller ``eps``. Missing for an optimizer without one.

    Warnings
    --------
    Exact zeros count, such as the rows of an embedding that the batch did not use.
    """
    return (wide(grad).abs() < group_eps).double().mean()


QUANTILES = Axis(
    "quantile", {"quantile": (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)}, group="quantiles"
)


@quantity(axis=QUANTILES, source="definition", question=questions.RATE, cost="sort")
def effective_lr_quantiles(
    state_exp_avg_sq: Tensor,
    state_step: Tensor,
    group_lr: float,
    group_betas: tuple[float, float],
    group_eps: float,
) -> Tensor:
    """Rates that Adam really applies, quantiles over the weight of ``lr / (sqrt(v) + eps)``.

    ``v`` is the second moment without its bias. The wider the quantiles, the more the optimizer
    treats weights of one layer differently; a top one near ``lr / eps`` belongs to weights that
    hardly ever have a gradient, and will leap when they do.

    Warnings
    --------
    Of a large weight, quantiles of an evenly spaced sample of about 100,000 elements are told.
    """
    second = _sample(_unbiased(state_exp_avg_sq, state_step, group_betas[1]))
    levels = second.new_tensor(QUANTILES.coords["quantile"])
    return (group_lr / (second.sqrt() + group_eps)).quantile(levels)


def _unbiased(average: Tensor, step: Tensor, beta: float) -> Tensor:
    """A running average without the bias of its beginning at zero."""
    return wide(average).double() / (1 - beta ** step.to(average.device).double())


MOST = 100_000


def _sample(values: Tensor) -> Tensor:
    """At most about `MOST` elements of a tensor, evenly spaced and from every row and column."""
    flat = values.flatten()
    stride = -(-flat.numel() // MOST)
    while stride > 1 and math.gcd(stride, flat.numel()) > 1:
        stride += 1
    return flat[:: max(stride, 1)]
