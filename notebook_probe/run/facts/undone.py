"""Updates whose changes are gone before the next one: other code writes the old weights back."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.alerts.rule import Severity
from notebook_probe.probes.step.optimizer_steps import running
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.unwritten import MOST_SAMPLED, sample

__all__ = ["UndoneUpdates"]

RULE = "updates_undone"
LOOKED_AT = (5, 10, 20)
"""Updates that are compared with the weights at the beginning of the next one."""
FEWEST = 2
"""Updates that are undone before it is reported: the first one alone may be one that a line search
rejects."""
MOST_WEIGHTS = 32
NEVER = 2**62
"""An update that never comes."""
ROUNDINGS = 4
"""Units in the last place by which a weight may differ that was put back."""
DRIFT = 2.0
"""Times what is left of all updates by which weights may have moved in the end."""


class _Weights:
    """A few weights: the first elements of each, and sums of blocks of all elements.

    Elements alone miss a row that keeps its change, such as that of a new token in a lookup whose
    other rows are put back; sums alone miss a change within a block, as by subtracting its mean.

    Parameters
    ----------
    weights : sequence of Tensor

    Attributes
    ----------
    before : Tensor
        Values at the time when it was made.
    slack : Tensor
        Differences of values that are rounding.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self._weights = weights
        self.before = self._values()
        self.slack = torch.cat([_slack(one) for one in weights])

    def change(self) -> Tensor:
        """Return the changes since then; infinite once a weight has another shape."""
        now = self._values()
        is_same = now.shape == self.before.shape and now.device == self.before.device
        return now - self.before if is_same else torch.full_like(self.before, math.inf)

    def _values(self) -> Tensor:
        values: list[Tensor] = []
        for weight in self._weights:
            wide = torch.promote_types(weight.dtype, torch.float32)
            values.append(sample(weight).to(wide, copy=True))
            if weight.numel() > MOST_SAMPLED:
                values += _sums(weight, wide)
        return torch.cat(values)


@dataclass(slots=True)
class _Update:
    """Weights of one update.

    Attributes
    ----------
    number : int
        Number of the update among those of all optimizers.
    before : _Weights
        Weights before the update.
    moved : Tensor or None
        Its change; None before it has ended.
    """

    number: int
    before: _Weights
    moved: Tensor | None = None


@dataclass(slots=True)
class _Looks:
    """Looks at the updates of one optimizer.

    Attributes
    ----------
    update : _Update or None
        Update whose change is to be compared with what is left of it.
    first : _Weights or None
        Weights before the first update that was looked at.
    left : float
        Most that was left of the change of one update.
    n_undone : int
        Updates that were undone; -1 once one was not.
    """

    update: _Update | None = None
    first: _Weights | None = None
    left: float = 0.0
    n_undone: int = 0


class UndoneUpdates:
    """Fact about weights that have their old values again when the next update begins.

    Nor may they move otherwise: many algorithms take steps only to try them.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._findings, self._later = context.findings, context.later
        self._looks: weakref.WeakKeyDictionary[Optimizer, _Looks] = weakref.WeakKeyDictionary()
        self.awaits_end = False
        """An update is open whose change is to be measured when it ends."""

    def gradients_ready(self, optimizer: Optimizer, n: int, step: int) -> int:
        """Look at the weights before the ``n``-th update; return the next one to look at."""
        if n > LOOKED_AT[-1] + 1:
            return NEVER
        looks = self._looks.setdefault(optimizer, _Looks())
        last, looks.update = looks.update, None
        # Between two updates of another optimizer the weights may be put back on purpose.
        is_next = last is not None and running.now.number == last.number + 1
        if last is not None and last.moved is not None and looks.first is not None and is_next:
            share = self._findings.threshold(RULE, "share")
            read = _compared(last.before, last.moved, looks.first.change(), share)
            self._later.read(read, partial(self._judge, looks, n - LOOKED_AT[0], step - 1))
        if n in LOOKED_AT and (weights := _applied(optimizer)):
            before = _Weights(weights)
            looks.update = _Update(running.now.number, before)
            looks.first = looks.first or before
            self.awaits_end = True
            return n + 1
        if n > LOOKED_AT[-1]:
            looks.first = None
        return min([one for one in LOOKED_AT if one > n], default=NEVER)

    def update_ends(self, optimizer: Optimizer) -> None:
        """Measure the change that an update has made."""
        self.awaits_end = False
        looks = self._looks.get(optimizer)
        if looks is not None and looks.update is not None:
            looks.update.moved = looks.update.before.change()

    def _judge(self, looks: _Looks, n_updates: int, step: int, read: Sequence[Any]) -> None:
        """Compare what is left of a change with the change; on the writer's thread."""
        moved, seen, left, kept, drift = read
        looks.left = max(looks.left, left)
        # An update that is all rounding would seem undone.
        is_undone = seen > 0 >= kept and drift <= DRIFT * n_updates * looks.left
        looks.n_undone = looks.n_undone + 1 if is_undone and looks.n_undone >= 0 else -1
        if looks.n_undone >= FEWEST:
            severity: Severity = "warning" if looks.n_undone == len(LOOKED_AT) else "remark"
            words = {"left": f"{left / moved:.1%}"}
            self._findings.say(RULE, step, severity=severity, words=words)


def _applied(optimizer: Optimizer) -> list[Tensor]:
    """Return a few parameters with a gradient, all of them on the last one's device."""
    every = [one for group in optimizer.param_groups for one in group["params"]]
    found = [
        one
        for one in every
        if one.grad is not None and type(one.data) is Tensor and one.is_floating_point()
    ]
    found = [one for one in found if one.device == found[-1].device]
    return found[:: -math.ceil(len(found) / MOST_WEIGHTS)] if found else []


def _sums(weight: Tensor, wide: torch.dtype) -> list[Tensor]:
    """Return the sums of blocks of all elements."""
    every, size = weight.detach().flatten(), _block(weight)
    n_whole = len(every) // size * size
    whole = every[:n_whole].view(-1, size).sum(1, dtype=wide)
    return [whole, every[n_whole:].sum(dtype=wide)[None]]


def _slack(weight: Tensor) -> Tensor:
    """Return the rounding of the first elements, and of the sums."""
    largest = torch.linalg.vector_norm(weight.detach().flatten(), math.inf)
    wide = torch.promote_types(weight.dtype, torch.float32)
    of_one = (largest * (ROUNDINGS * torch.finfo(weight.dtype).eps)).to(wide)
    if weight.numel() <= MOST_SAMPLED:
        return of_one.expand(weight.numel())
    size = _block(weight)
    n_sums = weight.numel() // size + 1
    return torch.cat([of_one.expand(MOST_SAMPLED), (of_one * size).expand(n_sums)])


def _block(weight: Tensor) -> int:
    return math.ceil(weight.numel() / MOST_SAMPLED)


def _compared(weights: _Weights, moved: Tensor, drift: Tensor, share: float) -> list[Tensor]:
    """Return the largest change of an update, what is left of it, and the change in all.

    Of the first two also what exceeds the share and rounding.
    """
    made, left = moved.abs(), weights.change().abs()
    seen, kept = (one - share * made - weights.slack for one in (made, left))
    return [one.amax() for one in (made, seen, left, kept, drift.abs())]
