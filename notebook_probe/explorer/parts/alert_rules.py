"""The alert rules: which of them watch and which wait, thresholds that are tried and edited."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypedDict

from notebook_probe.alerts import RULES, Rule, find_alerts
from notebook_probe.alerts.rule import Severity
from notebook_probe.errors import ProbeError
from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.messages.throttled import Throttled
from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.json_numbers import json_number
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.requests import EditRule, Request
from notebook_probe.run.controls import Controls

__all__ = ["AlertRules", "EditRuleClick", "RuleRow", "RuleTrial", "TryRule"]


class RuleRow(TypedDict):
    """Row of one rule."""

    name: str
    summary: str
    severity: Severity
    explained_by: list[str]
    thresholds: dict[str, float | None]
    """Thresholds; None for an infinite one."""
    rows: int
    steps: int
    state: str
    """"on", "waits for ...", "off: ..."; empty in a record that is not being watched."""


class TryRule(TypedDict):
    """Request the steps at which a rule with other thresholds would have reported."""

    v: int
    type: Literal["try_rule"]
    rule: str
    numbers: dict[str, float]


class RuleTrial(TypedDict):
    """Answer to `TryRule`: the first steps at which the rule would have reported."""

    rule: str
    numbers: dict[str, float]
    steps: list[int]
    """First few steps at which it would have reported."""
    n: int
    problem: str
    """Reason why this cannot be determined; empty if it can."""


class EditRuleClick(TypedDict):
    """Set the thresholds of a rule for the next rows."""

    v: int
    type: Literal["edit_rule"]
    id: str
    rule: str
    numbers: dict[str, float]


MOST_STEPS = 3


def _edit(click: EditRuleClick) -> Request:
    return EditRule(click["rule"], click["numbers"])


class AlertRules(Part):
    """Rules that are watched; for an opened record the known rules, which watch nothing."""

    name: ClassVar = "rules"
    clicks: ClassVar = {"edit_rule": Click(EditRuleClick, _edit)}
    heard: ClassVar = {"try_rule": TryRule}

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._seen: Sequence[Rule] = ()
        self._rows: Sequence[RuleRow] = ()
        self._states = Throttled(self._states_now)
        self._worker = Worker("notebook_probe trial")
        self._asked: TryRule | None = None
        self._trial: RuleTrial | None = None

    def state(self, seen: Seen) -> Mapping[str, Any]:
        rules = [*RULES.values()] if self._controls is None else [*self._controls.rules.values()]
        if rules != self._seen:
            self._seen, self._rows = rules, [*map(_row, rules)]
            self._states.expire()
        states = self._states.value()
        rows = [{**row, "state": states.get(row["name"], "")} for row in self._rows]
        return {"rules": rows, "trial": self._trial}

    def hear(self, message: TryRule) -> None:
        """Try a rule on everything recorded, in a thread; only the newest request counts."""
        self._asked = message
        self._worker.do(lambda: self._try(message))

    def _states_now(self) -> Mapping[str, str]:
        return {} if self._controls is None else self._controls.rules.states()

    def _try(self, message: TryRule) -> None:
        # Requests come while a number is typed; those that are out of date by now are skipped.
        if message is not self._asked or self._controls is None:
            return
        steps: list[int] = []
        problem = ""
        try:
            rule = self._controls.rules[message["rule"]].but(**message["numbers"])
            steps = [alert.step for alert in find_alerts(self._source, rule)]
        except ProbeError as error:
            problem = str(error)
        except Exception as error:  # a record may be on a disk that has gone
            problem = f"{type(error).__name__}: {error}"
        self._trial = {
            "rule": message["rule"],
            "numbers": message["numbers"],
            "steps": steps[:MOST_STEPS],
            "n": len(steps),
            "problem": problem,
        }


def _row(rule: Rule) -> RuleRow:
    return {
        "name": rule.name,
        # The docstring of the condition is the rule's description, so that both cannot differ.
        "summary": (inspect.getdoc(rule.condition) or "").partition("\n")[0],
        "severity": rule.severity,
        "explained_by": list(rule.explained_by),
        "thresholds": {name: json_number(number) for name, number in rule.thresholds.items()},
        "rows": rule.rows,
        "steps": rule.steps,
        "state": "",
    }
