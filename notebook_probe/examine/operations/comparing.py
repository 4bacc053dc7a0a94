"""Comparing one step of two models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from notebook_probe.examine.operations.aligned import first_of
from notebook_probe.examine.operations.first_difference import (
    DifferenceKind,
    FirstDifference,
    place_of,
)
from notebook_probe.examine.operations.stepping import logged_step
from notebook_probe.examine.subject import Arguments, LossFunction, Subject, copied
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.probes.replay.random_state import RandomState

__all__ = ["ModelLike", "first_difference", "made"]

ModelLike: TypeAlias = nn.Module | Callable[[], nn.Module]


def first_difference(
    this: nn.Module,
    other: nn.Module,
    inputs: Arguments,
    targets: Any = None,
    loss: LossFunction | None = None,
    other_loss: LossFunction | None = None,
    tolerance: float = 1e-6,
) -> FirstDifference:
    """Return the first operation in which one step of two models differs.

    Weights and buffers of the same name and shape are made equal before.

    Parameters
    ----------
    this, other : nn.Module
        Copies, with which nobody trains.
    """
    weights = _make_equal(this, other)
    here = logged_step(Subject(this, inputs, targets, _own(loss)))
    there = logged_step(Subject(other, inputs, targets, _own(other_loss or loss)))
    counts = len(here), len(there)
    found = first_of(here, there, tolerance)
    if found is None:
        kind: DifferenceKind = "weights" if weights else "none"
        return FirstDifference(kind, weights=weights, n_operations=counts)
    direction: Literal["forward", "backward"] = "backward" if found.is_backward else "forward"
    places = place_of(found.this), place_of(found.other)
    return FirstDifference(found.kind, direction, *places, weights, counts)


def made(other: ModelLike) -> nn.Module:
    """Return a copy of a model, or of what a function returns; random generators are put back.

    Raises
    ------
    TypeError
        ``other`` is neither a model nor a function that returns one.
    """
    state = RandomState.now()
    try:
        found = other if isinstance(other, nn.Module) else other()
    finally:
        state.set()
    if not isinstance(found, nn.Module):
        raise TypeError(
            f"first_difference({type(found).__name__}): a torch.nn.Module, a run, or a function "
            f"that returns a module is expected"
        )
    return copied(unwrap(found))


def _own(loss: LossFunction | None) -> LossFunction | None:
    """Return a copy of a loss that is a module, in which nothing is left behind."""
    return copied(loss) if isinstance(loss, nn.Module) else loss


def _make_equal(this: nn.Module, other: nn.Module) -> tuple[str, ...]:
    """Give the other model the weights and buffers of this one; return the names that differed."""
    here = {**dict(this.named_parameters()), **dict(this.named_buffers())}
    there = {**dict(other.named_parameters()), **dict(other.named_buffers())}
    differing = []
    with torch.no_grad():
        for name, value in there.items():
            source = here.get(name)
            if source is None or source.shape != value.shape:
                continue
            if not _is_same(source, value):
                differing.append(name)
                value.copy_(source)
    return tuple(differing)


def _is_same(one: Tensor, two: Tensor) -> bool:
    return torch.equal(one, two.to(one.device, one.dtype))
