"""Base of facts: where findings wait until the writer's thread reports them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ParamSpec

from notebook_probe.alerts import Rule
from notebook_probe.alerts.rule import Severity
from notebook_probe.alerts.track import Onset
from notebook_probe.record.format.source import ROOT

__all__ = ["FactFindings"]

P = ParamSpec("P")


class FactFindings:
    """Findings of all facts of one run, each once for a rule, a place and a kind.

    Parameters
    ----------
    rules : mapping of str to Rule
        Facts without a rule here are not reported.
    told : callable, optional
        Called at once with the step of each finding, and with what it is.
    """

    def __init__(
        self, rules: Mapping[str, Rule], told: Callable[[int, str], None] = lambda step, what: None
    ) -> None:
        self._rules, self._told = rules, told
        self._found: list[tuple[str, Onset]] = []
        self._known: dict[tuple[str, tuple[str, ...]], bool] = {}
        """Facts that were reported, by rule and modules, and whether each was only remarked."""
        self.problem = ""
        """The first error of a fact, in words; facts are looked at no more."""

    def follows(self, name: str) -> bool:
        """Return whether anyone wants to know."""
        return name in self._rules

    def threshold(self, name: str, number: str) -> float:
        """Return a number of a rule; infinite if the rule was removed."""
        rule = self._rules.get(name)
        return float("inf") if rule is None else rule.thresholds[number]

    def say(
        self,
        name: str,
        step: int,
        modules: Sequence[str] = (ROOT,),
        *,
        since: int | None = None,
        severity: Severity | None = None,
        words: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Report a fact, once for these modules: as a remark, and as an alert if it persists."""
        rule = self._rules.get(name)
        key = name, tuple(one or ROOT for one in modules)
        if rule is None:
            return
        is_remark = (severity or rule.severity) == "remark"
        if key in self._known and (is_remark or not self._known[key]):
            return
        self._known[key] = is_remark
        sentence = rule.says.format(**{**rule.thresholds, **words})
        first = step if since is None else since
        self._told(step, f"{name} was found at step {step}")
        self._found.append((name, Onset(step, key[1], sentence, (first, first), severity)))

    def attempt(self, look: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Look at something; whatever a model is, its training continues."""
        if self.problem:
            return
        try:
            look(*args, **kwargs)
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"

    def forget(self, name: str) -> None:
        """Forget that a fact was reported."""
        self._known = {key: one for key, one in self._known.items() if key[0] != name}

    def take(self) -> list[tuple[str, Onset]]:
        """Return and forget the findings, each with the name of its rule."""
        found, self._found = self._found, []
        return found
