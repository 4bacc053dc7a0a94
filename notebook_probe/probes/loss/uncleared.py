"""Gradients that are never cleared, so that each update applies the sum of all before it."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from notebook_probe.probes.step.gradient_hooks import hook_leaf

__all__ = ["UnclearedGradients"]


@dataclass(slots=True)
class Witness:
    """Parameter of an optimizer, with the state of its gradient since the last update.

    Attributes
    ----------
    group, place : int
        Position of the parameter in the optimizer.
    handle : RemovableHandle
        Handle of the hook that runs when a backward pass reaches the parameter.
    contents : int
        Identity of the contents of the parameter that has the hook.
    gradient : Tensor
        Gradient that the update has applied; a strong reference, because torch swaps no tensor that
        has a weak reference.
    version : int
        Version of the gradient at the end of the update: the number of writes.
    may_be_cleared : bool
        It was not zero at the end of the update, and can be read at no cost.
    has_come : bool
        A backward pass has reached the parameter since.
    n_uncleared : int
        Updates in a row that applied the gradient of the previous update again.
    """

    group: int
    place: int
    handle: RemovableHandle
    contents: int
    gradient: Tensor
    version: int
    may_be_cleared: bool = False
    has_come: bool = False
    n_uncleared: int = 0

    def was_cleared(self, optimizer: Optimizer) -> bool:
        """Return whether the gradient was removed, replaced, written to, or zeroed.

        Who writes to it between two passes does so on purpose, as one that keeps a part of it. No
        write is seen of ``gradient.data.zero_()``: the values are read where that is no wait.
        """
        gradient = self.parameter(optimizer).grad
        if gradient is None or gradient is not self.gradient or gradient._version != self.version:
            return True
        return self.may_be_cleared and not bool(gradient.any())

    def note(self, gradient: Tensor) -> None:
        """Note the gradient that an update has applied."""
        self.gradient, self.version = gradient, gradient._version
        self.may_be_cleared = gradient.is_cpu and bool(gradient.any())

    def parameter(self, optimizer: Optimizer) -> Tensor:
        parameter: Tensor = optimizer.param_groups[self.group]["params"][self.place]
        return parameter


class UnclearedGradients:
    """Detector of gradients that are not cleared, checked as passes reach a parameter.

    Hooks on parameters report backward passes, so nothing is read while another thread writes. An
    optimizer whose gradients were found cleared once is not checked again, so a correct training
    costs a few checks.
    """

    def __init__(self) -> None:
        self._witnesses: weakref.WeakKeyDictionary[Optimizer, Witness] = weakref.WeakKeyDictionary()
        self._settled: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._is_over = False
        self.looks = False
        """Something is not settled yet."""
        self.settled_last: weakref.ref[Optimizer] | None = None
        """Optimizer whose updates need no report; most trainings have only this one."""
        self.n_updates = 0
        """The most updates in a row that began with the gradients of the one before."""

    def end(self) -> None:
        """Stop checking."""
        self._is_over = True
        for optimizer in [*self._witnesses]:
            self._settle(optimizer)

    def _count(self) -> None:
        """Update both numbers, which are read at every step, only when something changes."""
        counts = [one.n_uncleared for one in self._witnesses.values()]
        self.looks, self.n_updates = bool(counts), max(counts, default=0)

    def pass_comes(self, optimizer: Optimizer) -> None:
        """Note a pass that has reached the witness, and has added nothing yet."""
        witness = self._witnesses.get(optimizer)
        if witness is None:
            return
        if witness.was_cleared(optimizer):
            self._settle(optimizer)
        else:
            witness.has_come = True

    def update_comes(self, optimizer: Optimizer) -> None:
        """Note an update, which applies the present gradient; one cleared meanwhile is settled."""
        witness = self._witnesses.get(optimizer)
        if witness is not None and witness.has_come:
            witness.n_uncleared += 1
            witness.has_come = False
            self._count()

    def update_is_over(self, optimizer: Optimizer) -> None:
        """Note the applied gradient, which should be cleared next."""
        if self._is_over or optimizer in self._settled:
            self.settled_last = weakref.ref(optimizer)
            return
        witness = self._witnesses.get(optimizer)
        if witness is None:
            witness = self._new(optimizer)
            if witness is None:
                return
        parameter = witness.parameter(optimizer)
        gradient = parameter.grad
        if gradient is None or parameter._cdata != witness.contents:
            self._settle(optimizer)
            return
        witness.note(gradient)

    def _new(self, optimizer: Optimizer) -> Witness | None:
        place = _smallest(optimizer)
        if place is None:
            return None
        parameter: Tensor = optimizer.param_groups[place[0]]["params"][place[1]]
        gradient = parameter.grad
        if gradient is None:
            return None
        handle = hook_leaf(parameter, _Comes(self, optimizer))
        witness = Witness(*place, handle, parameter._cdata, gradient, gradient._version)
        self._witnesses[optimizer] = witness
        self._count()
        return witness

    def _settle(self, optimizer: Optimizer) -> None:
        self._settled.add(optimizer)
        witness = self._witnesses.pop(optimizer, None)
        if witness is not None:
            witness.handle.remove()
        self._count()


class _Comes:
    """Hook for a pass that reaches a parameter; it holds neither the counter nor the optimizer."""

    __slots__ = ("_gradients", "_optimizer")

    def __init__(self, gradients: UnclearedGradients, optimizer: Optimizer) -> None:
        self._gradients, self._optimizer = weakref.ref(gradients), weakref.ref(optimizer)

    def __call__(self, gradient: Tensor) -> None:
        gradients, optimizer = self._gradients(), self._optimizer()
        if torch.compiler.is_compiling() or gradients is None or optimizer is None:
            return
        try:
            gradients.pass_comes(optimizer)
        except Exception:  # whatever a gradient is, its pass runs
            return


def _smallest(optimizer: Optimizer) -> tuple[int, int] | None:
    """Locate the smallest parameter with a gradient: the least to read."""
    sizes = [
        (value.numel(), i, j)
        for i, group in enumerate(optimizer.param_groups)
        for j, value in enumerate(group["params"])
        if value.grad is not None and value.requires_grad and not value.grad.is_sparse
    ]
    return min(sizes)[1:] if sizes else None
