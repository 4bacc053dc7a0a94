"""Parameters that were frozen when the optimizer was made, and that it does not have."""

from __future__ import annotations

import math
from collections.abc import Set

from torch import nn

from notebook_probe.run.facts.context import FactContext

__all__ = ["ThawedParameters"]

RULE = "not_in_optimizer"
EVERY = 16
"""Steps between two looks at least."""


class ThawedParameters:
    """Fact about parameters that require a gradient after a while, and are in no optimizer.

    Parameters
    ----------
    context : FactContext

    Attributes
    ----------
    due : float
        Step from which on the next look is due; infinite if nothing is frozen.
    """

    def __init__(self, context: FactContext) -> None:
        self._findings, self._modules = context.findings, context.modules
        self._frozen: list[tuple[str, str]] = []
        self._before: Set[tuple[str, str]] = frozenset()
        self._since, self.due = 0, math.inf

    @property
    def is_in_doubt(self) -> bool:
        """True if the last look has found some, which an optimizer may get soon."""
        return bool(self._before)

    def learn(self, model: nn.Module, step: int, held: Set[int]) -> None:
        """Note the frozen parameters that no optimizer has."""
        self._frozen = [
            (path, name)
            for path, module in model.named_modules()
            for name, one in module._parameters.items()
            if one is not None and not one.requires_grad and id(one) not in held
        ]
        self._before, self.due = frozenset(), step + EVERY if self._frozen else math.inf

    def look(self, step: int, held: Set[int]) -> None:
        """Look whether some have a gradient now, and had one at the last look."""
        self.due = step + EVERY
        modules = self._modules()
        found = frozenset(
            (path, name)
            for path, name in self._frozen
            if path in modules
            and (one := modules[path]._parameters.get(name)) is not None
            and one.requires_grad
            and one.grad is not None
            and id(one) not in held
        )
        self._since = self._since if self._before else step
        again, self._before = found & self._before, found
        if again:
            self._before, self.due = frozenset(), math.inf
            words = {"n": len(again), "held": "those that were not frozen when it was made"}
            paths = sorted({path for path, _ in again})
            self._findings.say(RULE, step, paths, since=self._since, words=words)
