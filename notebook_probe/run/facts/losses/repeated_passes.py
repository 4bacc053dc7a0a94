"""A second backward pass on one loss, which adds the same gradients once more."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from operator import is_
from typing import Any

from torch import Tensor

from notebook_probe.alerts.rule import Severity
from notebook_probe.run.facts.context import FactContext

__all__ = ["RepeatedPasses"]

RULE = "backward_twice"
N_READINGS = 3
"""Steps of which each had two passes on one loss, so that it is no single test."""


class RepeatedPasses:
    """Fact about losses on which ``backward()`` is called again before their gradients are cleared.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._findings, self._loss = context.findings, context.observer.updates.loss
        self._roots: list[weakref.ref[Tensor]] = []
        self._step, self._is_again = -1, False
        self._steps: list[int] = []

    def begins(self, roots: Sequence[Any], step: int) -> None:
        """Compare the roots of a pass with those of the pass before it."""
        before = [one() for one in self._roots]
        is_alike = len(roots) == len(before) > 0 and all(map(is_, roots, before))
        self._is_again, self._step = is_alike and step == self._step, step
        self._roots = [weakref.ref(one) for one in roots if isinstance(one, Tensor)]

    def ends(self) -> None:
        """Report a pass like the one before it, if it has added to the same gradients.

        The gradients themselves are not read here, where another thread may free them.
        """
        if self._is_again and self._loss.has_added and self._step not in self._steps:
            self._steps.append(self._step)
            severity: Severity = "warning" if len(self._steps) == N_READINGS else "remark"
            self._findings.say(RULE, self._step, severity=severity)
