"""Lines that loops forget most often: clearing gradients, and switching the mode of the model."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

from torch import nn

from notebook_probe.alerts import Rule
from notebook_probe.alerts.rule import Severity
from notebook_probe.alerts.track import Onset
from notebook_probe.probes.calls.unswitched import Unswitched, switched_off
from notebook_probe.probes.loss.uncleared import UnclearedGradients
from notebook_probe.record.format.source import ROOT
from notebook_probe.run.health.training_check import TrainingCheck

__all__ = ["NeverCleared", "TrainedUnswitched", "UnswitchedMode"]


class UnswitchedMode(TrainingCheck):
    """Detect evaluations in training mode.

    Parameters
    ----------
    calls : Unswitched
    rules : mapping of str to Rule
        The threshold ``after`` of `rule` is the number of evaluations.
    """

    rule = "evaluated_in_training_mode"

    def __init__(self, calls: Unswitched, rules: Mapping[str, Rule]) -> None:
        super().__init__(rules)
        self._calls, self._is_over = calls, False

    def look(self, step: int) -> bool:
        """Look at the evaluations so far, before a step; the next one makes it look again."""
        calls = self._calls
        rule = self._rules.get(self.rule) if calls.n and not self._is_over else None
        if rule is None or calls.n < rule.thresholds["after"]:
            return False
        self._is_over = True
        sentence = rule.says.format(n=calls.n)
        self._found = [Onset(step, calls.modules, sentence, (calls.first, calls.first))]
        return False


class TrainedUnswitched(TrainingCheck):
    """Detect a model that learns in evaluation mode.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    calls : Unswitched
    rules : mapping of str to Rule
        The threshold ``after`` of `rule` is the number of updates in a row.
    """

    rule = "trained_in_evaluation_mode"

    def __init__(self, model: nn.Module, calls: Unswitched, rules: Mapping[str, Rule]) -> None:
        super().__init__(rules)
        self._model, self._calls, self._is_over = weakref.ref(model), calls, False

    def look(self, step: int) -> bool:
        """Look at the calls so far, before a step; the next evaluation makes it look again."""
        n, model = self._calls.n_trained, self._model()
        rule = self._rules.get(self.rule) if n and not self._is_over else None
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


class NeverCleared(TrainingCheck):
    """Detect gradients that are never cleared.

    Parameters
    ----------
    gradients : UnclearedGradients
    rules : mapping of str to Rule
        The threshold ``after`` of `rule` is the number of updates in a row.
    """

    rule = "uncleared_gradients"

    def __init__(self, gradients: UnclearedGradients, rules: Mapping[str, Rule]) -> None:
        super().__init__(rules)
        self._gradients, self._is_remarked = gradients, False

    def look(self, step: int) -> bool:
        """Look at what became of the gradients, before a step; return whether to look again."""
        n_updates = self._gradients.n_updates
        rule = self._rules.get(self.rule) if n_updates else None  # of most trainings there are none
        if rule is None:
            return self._gradients.looks
        if n_updates < rule.thresholds["after"]:
            if not self._is_remarked:
                self._is_remarked = True
                self._say(rule, step, n_updates, "remark")
            return self._gradients.looks
        self._gradients.end()
        self._say(rule, step, n_updates, rule.severity)
        return False

    def _say(self, rule: Rule, step: int, n_updates: int, severity: Severity) -> None:
        since = max(0, step - n_updates - 1)
        n = "1 update" if n_updates == 1 else f"{n_updates} updates in a row"
        sentence = rule.says.format(n_updates=n)
        self._found.append(Onset(step, (ROOT,), sentence, (since, step), severity))
