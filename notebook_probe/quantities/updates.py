"""What an optimizer's step did to a weight: the exact difference, whatever made it."""

from __future__ import annotations

import math

from notebook_probe.quantities import questions
from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.stat import Stat, root

__all__ = ["log_step_size", "update_norm", "update_ratio"]


@quantity(source="definition", question=questions.RATE)
def update_norm(update_sumsq: Stat) -> float:
    """Length of the step of the weight, ``||W_after - W_before||_2``.

    What the optimizer did, with momentum, decay and all. It follows the schedule of the
    learning rate.

    Warnings
    --------
    Grows with the layer: `update_ratio` compares layers.
    """
    return root(update_sumsq.sumsq)


@quantity(source="https://cs231n.github.io/neural-networks-3/#ratio", question=questions.RATE)
def update_ratio(update_sumsq: Stat, weight_sumsq: Stat) -> float:
    """Relative step of the weight, ``||W_after - W_before||_2 / (||W_before||_2 + 1e-12)``.

    The difference is the exact one, whatever the optimizer did. About 1e-3 is a usual rule of
    thumb for a healthy learning rate; above 1e-2 it is high, below 1e-5 the layer hardly moves.

    Warnings
    --------
    Weights that begin at zero, as some biases and gates do, have huge ratios at first.
    """
    return root(update_sumsq.sumsq) / (root(weight_sumsq.sumsq) + 1e-12)


@quantity(source="GoMLX", question=questions.RATE)
def log_step_size(update_sumsq: Stat) -> float:
    """Length of the step of the weight on a log scale, ``ln ||W_after - W_before||_2``.

    A straight falling line is a learning rate that decays exponentially. Minus infinity for a
    weight that did not move.

    Warnings
    --------
    Natural logarithm: a difference of 2.3 is a factor of ten.
    """
    length = root(update_sumsq.sumsq)
    return math.log(length) if length else -math.inf
