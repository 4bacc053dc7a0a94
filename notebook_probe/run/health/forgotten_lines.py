"""A model in the wrong mode, evaluated or trained: the other lines that are forgotten often."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

from torch import nn

from notebook_probe.alerts import Rule
from notebook_probe.alerts.track import Onset
from notebook_probe.probes.calls.unswitched import Unswitched, switched_off

__all__ = ["TrainedUnswitched", "UnswitchedMode"]

RULE = "evaluated_in_training_mode"
TRAINED = "trained_in_evaluation_mode"


class UnswitchedMode:
    """Detect evaluations in training mode, once; on the training thread.

    Parameters
    ----------
    calls : Unswitched
    rules : mapping of str to Rule
        The threshold ``after`` of ``evaluated_in_training_mode`` is the number of evaluations.
    """

    def __init__(self, calls: Unswitched, rules: Mapping[str, Rule]) -> None:
        self._calls, self._rules = calls, rules
        self._is_over = False
        self._found: list[Onset] = []

    def look(self, step: int) -> bool:
        """Look at the evaluations so far, before a step; the next one makes it look again."""
        calls = self._calls
        rule = self._rules.get(RULE) if calls.n and not self._is_over else None
        if rule is None or calls.n < rule.thresholds["after"]:
            return False
        self._is_over = True
        sentence = rule.says.format(n=calls.n)
        self._found = [Onset(step, calls.modules, sentence, (calls.first, calls.first))]
        return False

    def take(self) -> list[Onset]:
        """Return and forget the findings."""
        found, self._found = self._found, []
        return found


class TrainedUnswitched:
    """Detect a model that learns in evaluation mode, once; on the training thread.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    calls : Unswitched
    rules : mapping of str to Rule
        The threshold ``after`` of ``trained_in_evaluation_mode`` is the number of updates in a row.
    """

    def __init__(self, model: nn.Module, calls: Unswitched, rules: Mapping[str, Rule]) -> None:
        self._model, self._calls, self._rules = weakref.ref(model), calls, rules
        self._is_over = False
        self._found: list[Onset] = []

    def look(self, step: int) -> bool:
        """Look at the calls so far, before a step; the next evaluation makes it look again."""
        n, model = self._calls.n_trained, self._model()
        rule = self._rules.get(TRAINED) if n and not self._is_over else None
        if rule is None or n <= rule.thresholds["after"] or model is None:
            return False
        self._is_over = True
        modules = tuple(switched_off(model))
        # Only modules that behave differently in the two modes matter.
        if modules:
            since = max(0, step - n)
            sentence = rule.says.format(n_updates=n - 1)
            self._found = [Onset(step, modules, sentence, (since, since))]
        return False

    def take(self) -> list[Onset]:
        """Return and forget the findings."""
        found, self._found = self._found, []
        return found
