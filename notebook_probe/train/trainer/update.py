"""Updates of the weights: clipped and scaled, unless something leaves one out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.train.trainer.clipping import Clipping
from notebook_probe.train.trainer.minibatches import n_skipped

__all__ = ["StepCalls", "parameters_of", "update"]


class StepCalls:
    """Counter of an optimizer's calls, as its hook: a scaler does not call it where it skips.

    Attributes
    ----------
    n : int
    """

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, *_: Any) -> None:
        self.n += 1


def update(optimizer: Optimizer, scaler: Any, clip: Clipping | None, calls: StepCalls) -> bool:
    """Update the weights; return whether that happened."""
    if scaler is None:
        if clip is not None and not clip(parameters_of(optimizer)):
            return False
        skipped = n_skipped(optimizer)
        optimizer.step()
        return n_skipped(optimizer) == skipped
    before = calls.n
    if clip is not None:
        scaler.unscale_(optimizer)
        # What overflowed is the scaler's to skip; it knows before anything is clipped.
        clip.clip_finite([*parameters_of(optimizer)])
    scaler.step(optimizer)
    scaler.update()
    return calls.n > before


def parameters_of(optimizer: Optimizer) -> Iterator[Tensor]:
    """Return the parameters of all groups."""
    return (value for group in optimizer.param_groups for value in group["params"])
