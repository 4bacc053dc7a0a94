"""Gradients that nobody clears, so that each update applies the sum of all before it."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.quantities.reduce.stat import Number

__all__ = ["UnclearedGradients"]


@dataclass(slots=True)
class Witness:
    """One parameter of an optimizer, and what became of its gradient since the last update.

    Attributes
    ----------
    group, place : int
        Where the optimizer holds it.
    version : int
        How often the gradient had been written to as the update was over.
    has_come : bool
        A pass has begun since.
    n_uncleared : int
        Updates in a row that applied what the one before had applied.
    """

    group: int
    place: int
    gradient: weakref.ref[Tensor]
    version: int
    has_come: bool = False
    n_uncleared: int = 0

    def was_cleared(self, optimizer: Optimizer) -> bool:
        """Whether its gradient is gone, another, or zero; a value is read only where it may be."""
        gradient: Tensor | None = optimizer.param_groups[self.group]["params"][self.place].grad
        if gradient is None or gradient is not self.gradient():
            return True
        return gradient._version != self.version and not bool(gradient.any())


class UnclearedGradients:
    """A `BackwardListener`: looks, as passes begin, whether what was applied is still there.

    An optimizer whose gradients are found cleared once is looked at no more, so that a training as
    it should be costs a few looks.
    """

    def __init__(self) -> None:
        self._witnesses: weakref.WeakKeyDictionary[Optimizer, Witness] = weakref.WeakKeyDictionary()
        self._settled: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._is_over = False
        self.listens = False
        """Something is not settled yet."""
        self.n_updates = 0
        """The most updates in a row that began with the gradients of the one before."""

    def end(self) -> None:
        """Look no more."""
        self._is_over = True
        self._witnesses.clear()
        self._count()

    def _count(self) -> None:
        """As rarely as anything changes: both numbers are asked for at every step."""
        counts = [one.n_uncleared for one in self._witnesses.values()]
        self.listens, self.n_updates = bool(counts), max(counts, default=0)

    def backward_begins(self, loss: Number) -> None:
        for optimizer, witness in [*self._witnesses.items()]:
            if witness.was_cleared(optimizer):
                self._settle(optimizer)
            else:
                witness.has_come = True
        self._count()

    def backward_ends(self, begun: None, *, has_come_through: bool) -> None:
        """What has come is no matter here."""

    def backward_took(self, seconds: float) -> None:
        """It listens for a few passes only."""

    def update_comes(self, optimizer: Optimizer) -> None:
        """It applies what is there now; what was cleared meanwhile is settled."""
        witness = self._witnesses.get(optimizer)
        if witness is not None and witness.has_come:
            witness.n_uncleared += 1
            witness.has_come = False
            self._count()

    def update_is_over(self, optimizer: Optimizer) -> None:
        """What it has applied is what should be cleared now."""
        if self._is_over or optimizer in self._settled:
            return
        before = self._witnesses.get(optimizer)
        found = _smallest(optimizer) if before is None else (before.group, before.place)
        if found is None:
            return
        gradient = optimizer.param_groups[found[0]]["params"][found[1]].grad
        if gradient is None:
            self._settle(optimizer)
            return
        n_uncleared = 0 if before is None else before.n_uncleared
        self._witnesses[optimizer] = Witness(
            *found, weakref.ref(gradient), gradient._version, n_uncleared=n_uncleared
        )
        self._count()

    def _settle(self, optimizer: Optimizer) -> None:
        self._settled.add(optimizer)
        self._witnesses.pop(optimizer, None)
        self._count()


def _smallest(optimizer: Optimizer) -> tuple[int, int] | None:
    """Where the smallest parameter is that has a gradient: the least to read."""
    sizes = [
        (value.numel(), i, j)
        for i, group in enumerate(optimizer.param_groups)
        for j, value in enumerate(group["params"])
        if value.grad is not None and not value.grad.is_sparse
    ]
    return min(sizes)[1:] if sizes else None
