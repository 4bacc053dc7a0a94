"""Whose parameters an optimizer holds: found by identity, so that nobody has to say it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

from torch import nn
from torch.optim import Optimizer

from notebook_probe.model.parameter_slots import Slot, slots_below

__all__ = ["Ownership"]


class Ownership:
    """Tells a model's optimizers from other models'.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = weakref.ref(model)
        # By identity, with their place to make sure: weak references to parameters would keep torch
        # from swapping their contents.
        self._own: dict[int, Slot] = {}
        self._strangers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()

    def has(self, optimizer: Optimizer) -> bool:
        """Tell whether the optimizer holds a parameter of this model."""
        for value in _parameters(optimizer):  # usually the first
            if self._knows(value):
                return True
        values = list(_parameters(optimizer))
        if self._strangers.get(optimizer) == len(values):
            return False
        model = self._model()
        if model is None:
            return False
        self._own = {id(slot.get()): slot for slot in slots_below(model)}
        ours = any(self._knows(value) for value in values)
        if not ours:
            self._strangers[optimizer] = len(values)
        return ours

    def _knows(self, value: nn.Parameter) -> bool:
        slot = self._own.get(id(value))
        return slot is not None and slot.get() is value


def _parameters(optimizer: Optimizer) -> Iterator[nn.Parameter]:
    return (value for group in optimizer.param_groups for value in group["params"])
