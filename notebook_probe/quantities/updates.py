"""What an optimizer's step did to a weight: the exact difference, whatever made it."""

from __future__ import annotations

import math

from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.stat import Stat, root

__all__ = ["log_step_size", "update_norm", "update_ratio"]


@quantity(source="definition")
def update_norm(update_sumsq: Stat) -> float:
    """Length of the step of the weight, ``||W_after - W_before||_2``."""
    return root(update_sumsq.sumsq)


@quantity(source="https://cs231n.github.io/neural-networks-3/#ratio")
def update_ratio(update_sumsq: Stat, weight_sumsq: Stat) -> float:
    """Relative step of the weight, ``||W_after - W_before||_2 / (||W_before||_2 + 1e-12)``.

    The difference is the exact one, whatever the optimizer did. About 1e-3 is a usual rule of
    thumb for a healthy learning rate.
    """
    return root(update_sumsq.sumsq) / (root(weight_sumsq.sumsq) + 1e-12)


@quantity(source="GoMLX")
def log_step_size(update_sumsq: Stat) -> float:
    """Length of the step of the weight on a log scale, ``ln ||W_after - W_before||_2``.

    Minus infinity for a weight that did not move.
    """
    length = root(update_sumsq.sumsq)
    return math.log(length) if length else -math.inf
