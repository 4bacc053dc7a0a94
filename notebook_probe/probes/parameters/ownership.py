"""Whose parameters an optimizer holds: found by identity, so that nobody has to say it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Any

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
        groups = optimizer.param_groups
        if self._knows_one_of(groups):
            return True
        n_values = sum(len(group["params"]) for group in groups)
        if self._strangers.get(optimizer) == n_values:
            return False
        model = self._model()
        if model is None:
            return False
        self._own = {id(slot.get()): slot for slot in slots_below(model)}
        is_ours = self._knows_one_of(groups)
        if not is_ours:
            self._strangers[optimizer] = n_values
        return is_ours

    def _knows_one_of(self, groups: Iterable[Mapping[str, Any]]) -> bool:
        own = self._own
        for group in groups:
            for value in group["params"]:  # usually it is the first
                slot = own.get(id(value))
                if slot is not None and slot.get() is value:
                    return True
        return False
