"""Updates that write to no parameter, though there is a gradient to apply."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

__all__ = ["N_UNWRITTEN", "UnwrittenUpdates", "is_same", "sample"]

MOST_SAMPLED = 4096
"""Elements of a weight that are compared before and after a step."""
N_UNWRITTEN = 16
"""Updates in a row that write nothing: an optimizer may accumulate a few gradients itself."""
STEADY = 16
"""Updates that have all written: an optimizer that accumulates gradients leaves one out sooner."""
FEWEST = 2
"""Updates in a row that write nothing where all before have written."""
LEAST_SHARE = 1e-3
"""Size of a gradient, as a share of the weight, that is no trifle."""


@dataclass(slots=True)
class _Idle:
    """Updates in a row that have written to no parameter, and the weights before them.

    Attributes
    ----------
    n : int
        Number of them so far.
    before : list
        Identity of each parameter, with a copy of its first elements.
    was_steady : bool
        Every update before them has written.
    """

    n: int
    before: list[tuple[int, Tensor]]
    was_steady: bool = False


class UnwrittenUpdates:
    """Updates in a row of each optimizer that write to none of its parameters."""

    def __init__(self) -> None:
        self._idle: weakref.WeakKeyDictionary[Optimizer, _Idle] = weakref.WeakKeyDictionary()
        self._has_been_idle: weakref.WeakSet[Optimizer] = weakref.WeakSet()

    def is_in_doubt(self, optimizer: Optimizer) -> bool:
        """Return whether its last update has written nothing, and too few to report it."""
        idle = self._idle.get(optimizer)
        return idle is not None and idle.n < N_UNWRITTEN

    def stops(self, optimizer: Optimizer, n: int, held: Sequence[Tensor]) -> bool:
        """Note that the ``n``-th update was the first to write nothing; return whether it counts.

        Parameters
        ----------
        optimizer : Optimizer
        n : int
            Number of the update.
        held : sequence of Tensor
            Some parameters with a gradient.
        """
        if optimizer in self._has_been_idle:
            return False
        self._has_been_idle.add(optimizer)
        if n < STEADY or optimizer in self._idle:
            return False
        self._idle[optimizer] = _Idle(1, _copies(held), was_steady=True)
        return True

    def count(self, optimizer: Optimizer, versions: Sequence[tuple[Tensor, int]]) -> int:
        """Count an update; return how many in a row have written nothing, if that is certain.

        Parameters
        ----------
        optimizer : Optimizer
        versions : sequence of (Tensor, int)
            Parameters with what torch had counted of writes to each before the update.

        Returns
        -------
        int
            0, `FEWEST` of an optimizer that has written at each update before, or `N_UNWRITTEN`.
        """
        if any(one._version != version for one, version in versions):
            self._idle.pop(optimizer, None)
            return 0
        found = self._idle.get(optimizer)
        if found is None:
            found = self._idle[optimizer] = _Idle(0, _copies([one for one, _ in versions]))
        found.n += 1
        if found.n == N_UNWRITTEN or (found.n == FEWEST and found.was_steady):
            is_certain = _are_left(found, [one for one, _ in versions])
            return found.n if is_certain and (found.n > FEWEST or _is_applied(optimizer)) else 0
        return 0


def _copies(held: Sequence[Tensor]) -> list[tuple[int, Tensor]]:
    return [(id(one), torch.clone(sample(one))) for one in held if _is_plain(one)]


def _is_plain(value: Tensor) -> bool:
    return value.is_cpu and type(value.data) is Tensor


def _are_left(found: _Idle, held: Sequence[Tensor]) -> bool:
    """Return whether the weights have the same values as before, and something to learn.

    Writes to `.data` are not counted: the values decide.
    """
    few = {id(one): one for one in held if _is_plain(one)}
    same = {key for key, old in found.before if key in few and is_same(few[key], old)}
    # L-BFGS writes nothing once the gradient is below its tolerance.
    return same == few.keys() and _have_to_learn(few.values())


def _is_applied(optimizer: Optimizer) -> bool:
    """Return whether no gradient scaler has kept the update back, nor a gradient without end."""
    skipped = getattr(optimizer, "found_inf", None)
    if isinstance(skipped, Tensor) and bool(skipped):
        return False
    gradients = [one.grad for group in optimizer.param_groups for one in group["params"]]
    return all(bool(one.isfinite().all()) for one in gradients if one is not None and one.is_cpu)


def _have_to_learn(values: Iterable[Tensor]) -> bool:
    """Return whether the gradients are no trifle compared with the weights."""
    dense = [one for one in values if one.grad is not None and not one.grad.is_sparse]
    gradients, weights = (
        math.hypot(*(torch.linalg.vector_norm(sample(one).float()).item() for one in some))
        for some in ([one.grad for one in dense if one.grad is not None], dense)
    )
    return gradients > LEAST_SHARE * weights


def sample(value: Tensor) -> Tensor:
    """Return the first elements, in the order of memory."""
    return (
        value.detach().as_strided((min(value.numel(), MOST_SAMPLED),), (1,))
        if (value.is_contiguous())
        else value.detach().flatten()[:MOST_SAMPLED]
    )


def is_same(value: Tensor, before: Tensor) -> bool:
    """Return whether the first elements of a weight are those of a sample."""
    now = sample(value)
    return now.shape == before.shape and now.dtype == before.dtype and torch.equal(now, before)
