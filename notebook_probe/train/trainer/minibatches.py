"""Optimizers that take each minibatch, or that leave updates out themselves."""

from __future__ import annotations

from typing import Any, Protocol, cast

from torch.optim import Optimizer

__all__ = ["TakesMinibatches", "check_scaler", "n_skipped", "taking_minibatches"]


class TakesMinibatches(Protocol):
    """Optimizer that takes the gradients of each minibatch, and averages them itself.

    Optimizers that do are in `experiment`, which is above this package.
    """

    clip_each_minibatch: bool

    def accumulate_gradients(self, num_minibatches: int) -> None: ...


def taking_minibatches(optimizer: Optimizer) -> TakesMinibatches | None:
    """Return the optimizer, if it takes each minibatch separately."""
    if getattr(optimizer, "clip_each_minibatch", False) is not True:
        return None
    return cast(TakesMinibatches, optimizer)


def n_skipped(optimizer: Optimizer) -> int:
    """Return the number of updates that it has skipped itself; 0 for torch's optimizers."""
    return int(getattr(optimizer, "n_skipped", 0))


def check_scaler(scaler: Any, optimizer: Optimizer) -> None:
    """Raise ValueError where gradients would be clipped while they are scaled."""
    if scaler is not None and taking_minibatches(optimizer) is not None:
        raise ValueError(
            "clip_each_minibatch=True with a scaler: gradients of a minibatch are scaled when they "
            "are clipped; allowed: clipping their mean, or no scaler"
        )
