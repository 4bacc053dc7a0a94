"""A training that never clears its gradients: the line that is forgotten most often."""

from __future__ import annotations

from collections.abc import Mapping

from notebook_probe.alerts import Rule
from notebook_probe.alerts.track import Onset
from notebook_probe.probes.loss.uncleared import UnclearedGradients

__all__ = ["NeverCleared"]

RULE = "uncleared_gradients"


class NeverCleared:
    """Detect gradients that are never cleared, once; on the training thread.

    Parameters
    ----------
    gradients : UnclearedGradients
    rules : mapping of str to Rule
        The threshold ``after`` of ``uncleared_gradients`` is the number of updates in a row.
    """

    def __init__(self, gradients: UnclearedGradients, rules: Mapping[str, Rule]) -> None:
        self._gradients, self._rules = gradients, rules
        self._found: list[Onset] = []

    def look(self, step: int) -> bool:
        """Look at what became of the gradients, before a step; return whether to look again."""
        n_updates = self._gradients.n_updates
        rule = self._rules.get(RULE) if n_updates else None  # of most trainings there are none
        if rule is None or n_updates < rule.thresholds["after"]:
            return self._gradients.looks
        self._gradients.end()
        since = max(0, step - n_updates - 1)
        self._found = [Onset(step, ("",), rule.says.format(n_updates=n_updates), (since, step))]
        return False

    def take(self) -> list[Onset]:
        """Return and forget the findings."""
        found, self._found = self._found, []
        return found
