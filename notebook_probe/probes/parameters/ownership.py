"""Ownership of an optimizer's parameters: found by identity, without being declared."""

from __future__ import annotations

import weakref

from torch import nn
from torch.optim import Optimizer

from notebook_probe.model.changes import registrations
from notebook_probe.model.parameter_slots import Slot, slots_below

__all__ = ["Ownership"]


class Ownership:
    """Distinction of a model's optimizers from other models'.

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
        # How many parameters they hold, and what was registered when none was the model's.
        self._strangers: weakref.WeakKeyDictionary[Optimizer, tuple[int, int]] = (
            weakref.WeakKeyDictionary()
        )

    def has(self, optimizer: Optimizer) -> bool:
        """Return whether the optimizer holds a parameter of this model."""
        groups, own = optimizer.param_groups, self._own
        for group in groups if own else ():
            for value in group["params"]:  # usually it is the first
                slot = own.get(id(value))
                owner = slot.owner() if slot is not None else None
                if slot is None or owner is None:
                    continue
                # As slot.get(), which a scripted module needs.
                there = owner.__dict__.get("_parameters")
                now = there.get(slot.name) if isinstance(there, dict) else slot.get()
                if now is value:
                    return True
        return self._has_now(optimizer)

    def _has_now(self, optimizer: Optimizer) -> bool:
        """Find the model's present parameters, and return whether the optimizer holds one."""
        values = [value for group in optimizer.param_groups for value in group["params"]]
        here = len(values), registrations.n
        if self._strangers.get(optimizer) == here:
            return False
        model = self._model()
        if model is None:
            return False
        try:
            self._own = {id(slot.get()): slot for slot in slots_below(model)}
        except RuntimeError:  # another thread changes the model: it is asked again at the next step
            return False
        is_ours = any(id(value) in self._own for value in values)
        if not is_ours:
            self._strangers[optimizer] = here
        return is_ours
