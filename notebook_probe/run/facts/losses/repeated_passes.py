"""A second backward pass on one loss, which adds the same gradients once more."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from torch import Tensor, nn

from notebook_probe.alerts.rule import Severity
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.parameters import Written, written

__all__ = ["RepeatedPasses"]

RULE = "backward_twice"
N_READINGS = 3
"""Steps of which each had two passes on one loss, so that it is no single test."""
MOST_GRADIENTS = 4


class RepeatedPasses:
    """Fact about losses on which ``backward()`` is called again before their gradients are cleared.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._modules, self._findings = context.modules, context.findings
        self._roots: list[weakref.ref[Tensor]] = []
        self._step = -1
        self._gradients: list[Written] = []
        self._steps: list[int] = []

    def begins(self, roots: Sequence[Any], step: int) -> None:
        """Compare the roots of a pass with those of the pass before it."""
        before = [one() for one in self._roots]
        is_again = step == self._step and len(roots) == len(before) and bool(roots)
        is_again = is_again and all(one is old for one, old in zip(roots, before, strict=False))
        is_left = is_again and self._gradients == _gradients(self._modules()) != []
        if is_left and step not in self._steps:
            self._steps.append(step)
            severity: Severity = "warning" if len(self._steps) == N_READINGS else "remark"
            self._findings.say(RULE, step, severity=severity)
        self._step = step
        self._roots = [weakref.ref(one) for one in roots if isinstance(one, Tensor)]

    def ends(self) -> None:
        """Note the gradients after a pass; what clears, clips or scales them writes to them."""
        self._gradients = _gradients(self._modules())


def _gradients(modules: Mapping[str, nn.Module]) -> list[Written]:
    """Return the state of the gradients of the first parameters that have one."""
    every = (one for module in modules.values() for one in module._parameters.values())
    states = (written(one.grad) for one in every if one is not None)
    return [*islice((state for state in states if state is not None), MOST_GRADIENTS)]
