"""Optimizers that step when one is asked to: itself, or those that it wraps."""

from __future__ import annotations

from typing import Any

from torch.optim import Optimizer

__all__ = ["stepped_by"]


def stepped_by(optimizer: Optimizer) -> list[Optimizer]:
    """Return the optimizers whose steps torch announces.

    A wrapper with the groups of those inside, such as accelerate's, has no hooks that are called.
    """
    inside: Any = getattr(optimizer, "optimizers", None) or [getattr(optimizer, "optimizer", None)]
    if not isinstance(inside, list | tuple) or not all(
        isinstance(one, Optimizer) and one is not optimizer for one in inside
    ):
        return [optimizer]
    groups = [group for one in inside for group in one.param_groups]
    own = optimizer.param_groups
    if len(groups) != len(own) or any(a is not b for a, b in zip(groups, own, strict=True)):
        return [optimizer]
    return [found for one in inside for found in stepped_by(one)]
