"""Whose parameters an optimizer holds: found by identity, so that nobody has to say it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

from torch import nn
from torch.optim import Optimizer

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
        self._own: dict[int, weakref.ref[nn.Parameter]] = {}
        self._strangers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()

    def has(self, optimizer: Optimizer) -> bool:
        """Tell whether the optimizer holds a parameter of this model."""
        if any(self._knows(value) for value in _parameters(optimizer)):  # usually the first
            return True
        values = list(_parameters(optimizer))
        if self._strangers.get(optimizer) == len(values):
            return False
        model = self._model()
        if model is None:
            return False
        self._own = {id(value): weakref.ref(value) for value in model.parameters()}
        ours = any(self._knows(value) for value in values)
        if not ours:
            self._strangers[optimizer] = len(values)
        return ours

    def _knows(self, value: nn.Parameter) -> bool:
        known = self._own.get(id(value))
        return known is not None and known() is value


def _parameters(optimizer: Optimizer) -> Iterator[nn.Parameter]:
    return (value for group in optimizer.param_groups for value in group["params"])
