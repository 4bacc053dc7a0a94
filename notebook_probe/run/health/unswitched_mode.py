"""Dropout that is active while a model is evaluated: the other line that is forgotten often."""

from __future__ import annotations

from collections.abc import Mapping

from notebook_probe.alerts import Rule
from notebook_probe.alerts.track import Finding
from notebook_probe.probes.calls.unswitched import Unswitched

__all__ = ["UnswitchedMode"]

RULE = "evaluated_in_training_mode"


class UnswitchedMode:
    """Says so once; on the training thread.

    Parameters
    ----------
    calls : Unswitched
    rules : mapping of str to Rule
        The threshold ``after`` of ``evaluated_in_training_mode`` is the number of evaluations.
    """

    def __init__(self, calls: Unswitched, rules: Mapping[str, Rule]) -> None:
        self._calls, self._rules = calls, rules
        self._is_over = False
        self._found: list[Finding] = []

    def look(self, step: int) -> None:
        """Look at the evaluations so far, before a step."""
        calls = self._calls
        rule = self._rules.get(RULE) if calls.n and not self._is_over else None
        if rule is None or calls.n < rule.thresholds["after"]:
            return
        self._is_over = True
        sentence = rule.says.format(n=calls.n)
        self._found = [Finding(step, calls.modules, sentence, (calls.first, calls.first))]

    def take(self) -> list[Finding]:
        """What was found since the last time."""
        found, self._found = self._found, []
        return found
