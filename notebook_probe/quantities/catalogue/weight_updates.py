"""Effect of an optimizer's step on a weight: the exact difference, whatever made it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.arrays import components
from notebook_probe.quantities.reduce.stat import Stat, root
from notebook_probe.quantities.reduce.vectors import cosine

__all__ = ["log_step_size", "update_cosine", "update_norm", "update_ratio"]


@quantity(source="definition", question=questions.RATE)
def update_norm(update_sumsq: Stat) -> float:
    """Length of the step of the weight, ``||W_after - W_before||_2``.

    The change that the optimizer made, including momentum and weight decay. It follows the schedule
    of the learning rate.

    Warnings
    --------
    Grows with the layer: `update_ratio` compares layers.
    """
    return root(update_sumsq.sumsq)


@quantity(
    source="https://cs231n.github.io/neural-networks-3/#ratio", question=questions.RATE, usual=1e-3
)
def update_ratio(update_sumsq: Stat, weight_sumsq: Stat) -> float:
    """Relative step of the weight, ``||W_after - W_before||_2 / ||W_before||_2``.

    The difference is the exact one, whatever the optimizer did. About 1e-3 is a usual rule of
    thumb for a healthy learning rate; above 1e-2 it is high, below 1e-5 the layer hardly moves.
    Missing where all of the weight is zero: no step is small or large against that.

    Warnings
    --------
    Weights that begin at zero, as some biases, gates and the second matrix of LoRA do, have large
    ratios in the first steps.
    """
    if not weight_sumsq.sumsq:
        raise UnreadableError(
            "all of the weight is zero, so that no step has a size relative to it"
        )
    return root(update_sumsq.sumsq) / root(weight_sumsq.sumsq)


@quantity(source="GoMLX", aliases=("trainer_log_step_size_l2norm",), question=questions.RATE)
def log_step_size(each_update_sumsq: Sequence[Stat | None]) -> float:
    """Length of the step on a log scale, ``ln ||W_after - W_before||_2`` over all parameters below.

    At the root it is that of the whole model. It falls with the learning rate; a jump is a step
    that went astray. Minus infinity where nothing moved, missing where no optimizer stepped.

    Warnings
    --------
    Natural logarithm: one less is a step 2.7 times shorter.
    """
    length = root(sum(one.sumsq for one in each_update_sumsq if one is not None))
    return math.log(length) if length else -math.inf


@quantity(source="definition", question=questions.RATE, bounds=(-1, 1))
def update_cosine(update: Tensor, grad: Tensor) -> Tensor:
    """Alignment of the step with the downhill gradient, ``cos(W_after - W_before, -g)``.

    1 for plain SGD; momentum, weight decay and Adam's scaling turn the step away from the gradient
    of this batch. Below 0 the step of this weight goes up its own gradient. Missing where the
    weight did not move, or without a gradient.

    Warnings
    --------
    In bfloat16 small steps are rounded away or to a coarse grid, which turns them too.
    """
    return -cosine(components(update), components(grad))
