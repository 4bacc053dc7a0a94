"""Ownership of an optimizer's parameters: found by identity, without being declared."""

from __future__ import annotations

import weakref
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from torch import nn
from torch.optim import Optimizer

from notebook_probe.model.changes import registrations
from notebook_probe.model.parameter_slots import Slot, slots_below

__all__ = ["Ownership"]

MOST_STRANGERS = 64
"""Optimizers of other models that are remembered."""
_parameters = itemgetter("params")


class Stranger(NamedTuple):
    """An optimizer that holds no parameter of the model.

    Attributes
    ----------
    optimizer : weak reference to Optimizer
    held : list of int
        Identities of the parameters that it holds.
    n_registered : int
        Modules and parameters registered in this process by then: the model may get one later.
    """

    optimizer: weakref.ref[Optimizer]
    held: list[int]
    n_registered: int


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
        self._strangers: dict[int, Stranger] = {}

    def has(self, optimizer: Optimizer) -> bool:
        """Return whether the optimizer holds a parameter of this model."""
        if id(optimizer) in self._strangers and self.excludes(optimizer):
            return False
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

    def excludes(self, optimizer: Optimizer) -> bool:
        """Return whether the optimizer is known to hold no parameter of this model."""
        known = self._strangers.get(id(optimizer))
        if (
            known is None
            or known.optimizer() is not optimizer
            or known.n_registered != registrations.n
        ):
            return False
        groups = map(_parameters, optimizer.param_groups)
        return known.held == [*map(id, chain.from_iterable(groups))]  # no call, at every step

    def _has_now(self, optimizer: Optimizer) -> bool:
        """Find the model's present parameters, and return whether the optimizer holds one."""
        model, n_registered = self._model(), registrations.n
        if model is None:
            return False
        try:
            self._own = {id(slot.get()): slot for slot in slots_below(model)}
        except RuntimeError:  # another thread changes the model: it is asked again at the next step
            return False
        held = _identities(optimizer)
        if not self._own.keys().isdisjoint(held):
            return True
        if len(self._strangers) >= MOST_STRANGERS:
            self._strangers.clear()  # some may be gone
        self._strangers[id(optimizer)] = Stranger(weakref.ref(optimizer), held, n_registered)
        return False


def _identities(optimizer: Optimizer) -> list[int]:
    """Return the identities of all parameters of an optimizer."""
    return [*map(id, chain.from_iterable(map(_parameters, optimizer.param_groups)))]
