"""Which passes have come to a model: told by the gradients of a few of its parameters.

At first all of them are looked at, before a pass and after it. Of those that the passes of an
update have left something at one for each pass is enough, mostly one in all.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple, TypeAlias

from torch import Tensor, nn

from notebook_probe.model.parameter_slots import Slot, distinct, slots_below

__all__ = ["Left", "Look", "Witnesses"]

MOST = 8
"""Parameters that are looked at, where it is not all of them."""

Look: TypeAlias = "list[tuple[Tensor | None, Tensor | None, int]]"
"""Parameter, gradient, and how often that was written to; of each that is looked at."""


class Left(NamedTuple):
    """A gradient that a pass has left at a parameter."""

    slot: Slot
    parameter: Tensor
    gradient: weakref.ref[Tensor]

    @property
    def is_there(self) -> bool:
        """It is still the parameter's, whatever was done to its values in place."""
        gradient = self.parameter.grad
        return gradient is not None and gradient is self.gradient()

    @property
    def was_cleared(self) -> bool:
        return self.parameter.grad is None


class Witnesses:
    """Some parameters of a model.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = weakref.ref(model)
        self._chosen: list[Slot] = []
        self._looked_at: list[Slot] | None = None

    def look(self) -> Look:
        """The gradients now."""
        if self._looked_at is None:
            model = self._model()
            self._looked_at = distinct(slots_below(model)) if model is not None else []
        found: Look = []
        for slot in self._looked_at:
            parameter = slot.get()
            gradient = None if parameter is None else parameter.grad
            found.append((parameter, gradient, -1 if gradient is None else gradient._version))
        return found

    def left(self, before: Look) -> list[Left]:
        """What is another than before; with fewer parameters than then, what can be told of."""
        found = []
        slots = self._looked_at or ()
        if len(slots) != len(before):
            return []
        for slot, (parameter, old, version) in zip(slots, before, strict=True):
            gradient = None if parameter is None else parameter.grad
            if parameter is None or gradient is None:
                continue
            if gradient is not old or gradient._version != version:
                found.append(Left(slot, parameter, weakref.ref(gradient)))
        return found

    def choose(self, passes: list[list[Slot]]) -> None:
        """Look from now on at as few parameters as tell of all these passes, each by where it came.

        At those that were chosen before, too: what is trained may change from step to step.
        """
        if self._looked_at is self._chosen or not any(passes):
            return
        for slots in filter(None, passes):
            if not any(slot in self._chosen for slot in slots):
                self._chosen = [*self._chosen, slots[0]][-MOST:]
        self._looked_at = self._chosen

    def forget(self) -> None:
        """Look at all parameters: those that were chosen have not told of a pass."""
        self._looked_at = None
