"""Lines that loops forget most often: clearing gradients, and switching the mode of the model."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

from torch import nn

from notebook_probe.alerts import Rule
from notebook_probe.alerts.track import Onset
from notebook_probe.probes.calls.unswitched import Unswitched, switched_off
from notebook_probe.probes.loss.uncleared import UnclearedGradients

__all__ = ["NeverCleared", "TrainedUnswitched", "UnswitchedMode"]

EVALUATED = "evaluated_in_training_mode"
TRAINED = "trained_in_evaluation_mode"
UNCLEARED = "uncleared_gradients"


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
        rule = self._rules.get(EVALUATED) if calls.n and not self._is_over else None
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
        rule = self._rules.get(UNCLEARED) if n_updates else None  # of most trainings there are none
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
