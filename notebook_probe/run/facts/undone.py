"""Updates whose changes are gone before the next one: other code writes the old weights back."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.alerts.rule import Severity
from notebook_probe.probes.step.optimizer_steps import running
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.unwritten import sample

__all__ = ["UndoneUpdates"]

RULE = "updates_undone"
LOOKED_AT = (5, 10, 20)
"""Updates that are compared with the weights at the beginning of the next one."""
MOST_WEIGHTS = 32
NEVER = 2**62
"""An update that never comes."""


@dataclass(slots=True)
class _Update:
    """Weights of one update.

    Attributes
    ----------
    number : int
        Number of the update among those of all optimizers.
    before : list of (Tensor, Tensor)
        Weights, each with a copy of its first elements before the update.
    moved : Tensor or None
        Squared length of the change; None before the update has ended.
    """

    number: int
    before: list[tuple[Tensor, Tensor]]
    moved: Tensor | None = None


class UndoneUpdates:
    """Fact about weights that have their old values again when the next update begins.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._findings, self._later = context.findings, context.later
        self._open: weakref.WeakKeyDictionary[Optimizer, _Update] = weakref.WeakKeyDictionary()
        self._n_undone = 0
        self.awaits_end = False
        """An update is open whose change is to be measured when it ends."""

    def gradients_ready(self, optimizer: Optimizer, n: int, step: int) -> int:
        """Look at the weights before the ``n``-th update; return the next one to look at."""
        if n > LOOKED_AT[-1] + 1:
            return NEVER
        last = self._open.pop(optimizer, None)
        # Between two updates of another optimizer the weights may be put back on purpose.
        if last is not None and last.moved is not None and running.now.number == last.number + 1:
            left = _squared_distance(last.before)
            self._later.read([last.moved, left], partial(self._judge, step - 1))
        if n in LOOKED_AT:
            before = [(one, torch.clone(sample(one))) for one in _applied(optimizer)]
            if before:
                self._open[optimizer] = _Update(running.now.number, before)
                self.awaits_end = True
                return n + 1
        return min([one for one in LOOKED_AT if one > n], default=NEVER)

    def update_ends(self, optimizer: Optimizer) -> None:
        """Measure the change that an update has made."""
        self.awaits_end = False
        if (update := self._open.get(optimizer)) is not None:
            update.moved = _squared_distance(update.before)

    def _judge(self, step: int, read: Sequence[Any]) -> None:
        """Compare what is left of a change with the change; on the writer's thread."""
        moved, left = read
        share = self._findings.threshold(RULE, "share")
        is_undone = moved > 0 and left < share**2 * moved
        self._n_undone = self._n_undone + 1 if is_undone else 0
        if is_undone:
            severity: Severity = "warning" if self._n_undone == len(LOOKED_AT) else "remark"
            words = {"left": f"{(left / moved) ** 0.5:.1%}"}
            self._findings.say(RULE, step, severity=severity, words=words)


def _applied(optimizer: Optimizer) -> list[Tensor]:
    """Return a few parameters with a gradient, all of them on the first one's device."""
    found: list[Tensor] = []
    for one in _held(optimizer):
        if not found or one.device == found[0].device:
            found.append(one)
        if len(found) == MOST_WEIGHTS:
            break
    return found


def _held(optimizer: Optimizer) -> Iterator[Tensor]:
    for group in optimizer.param_groups:
        for one in group["params"]:
            if one.grad is not None and type(one.data) is Tensor and one.is_floating_point():
                yield one


def _squared_distance(before: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Return how far weights are from what they were, as a square, on their device."""
    parts = [(sample(one) - old).float().square().sum() for one, old in before]
    return torch.stack(parts).sum()
