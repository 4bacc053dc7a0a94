"""Alerts: what a rule has found, once, at a step, in words; stored as events of the record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from notebook_probe.alerts.rule import FLOWS, RULES, SEVERITIES, Flow, Severity
from notebook_probe.printable import printable
from notebook_probe.record.format.source import ROOT, Event

__all__ = [
    "ALERT",
    "REMARK",
    "RULE_EDIT",
    "Alert",
    "alert_of",
    "began_at",
    "read_rules_off",
    "rule_off",
    "where",
]

ALERT = "alert"
"""The kind of its event."""

REMARK: Final = "remark"
"""The kind of the event of a finding that may be intended."""

RULE_EDIT: Final = "rule"
"""The kind of the event of a rule that is followed otherwise than before, or no more."""

_OFF = re.compile(r"alert rule (?P<name>\w+) is off: (?P<why>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule's condition, fulfilled.

    Attributes
    ----------
    rule : str
        Name of the rule.
    step : int
        Step of the row with which the condition was fulfilled.
    text : str
        The sentence, with the place and the numbers of the first of `modules`.
    modules : tuple of str
        Modules; ``"(root)"`` for the model as a whole. A flow started at the first of them.
    quantities : tuple of str
        Quantities in the condition: series of the record.
    view : str
        The view of the Explorer that explains it.
    time_ms : int
        Time of the finding, milliseconds since 1970; 0 if nothing waited for it.
    severity : "remark", "warning" or "severe"
        Severity of the rule, or of this finding. A remark may be intended.
    flow : "forward", "backward" or None
        Direction in which `modules` are in order; None for the order of definition.
    consequence_of : tuple of str
        The rules whose alerts may be its cause.
    began : tuple of int, optional
        The steps between which it began, at the first module: after the last row that was measured
        without it, up to the first with it. None where a record does not say.
    """

    rule: str
    step: int
    text: str
    modules: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    view: str = "lines"
    time_ms: int = 0
    severity: Severity = "warning"
    flow: Flow | None = None
    consequence_of: tuple[str, ...] = ()
    began: tuple[int, int] | None = None

    @property
    def is_remark(self) -> bool:
        """True if it may be intended."""
        return self.severity == "remark"

    @property
    def module(self) -> str:
        """The first of `modules`, as ``run.data.sel(module=...)`` takes it."""
        return self.modules[0] if self.modules else ROOT

    @property
    def place(self) -> str:
        """Place of the alert, in words."""
        return where(self.modules) if self.modules else ""

    @property
    def sentence(self) -> str:
        """The text without the place."""
        return self.text.removeprefix(f"{self.place}: ")

    @property
    def said(self) -> str:
        """The rule, where it began, and the sentence."""
        return f"{self.rule} {began_at(self.modules, self.flow)}: {self.sentence}"

    @property
    def detail(self) -> str:
        """Details for programs, for its event: JSON."""
        return json.dumps(
            {
                "rule": self.rule,
                "modules": self.modules,
                "quantities": self.quantities,
                "view": self.view,
                "severity": self.severity,
                "flow": self.flow,
                "consequence_of": self.consequence_of,
                "began": self.began,
            }
        )

    def __str__(self) -> str:
        return printable(f"step {self.step}: {self.said}")


def alert_of(event: Event) -> Alert:
    """Return the alert in an event; of a malformed detail only its sentence.

    Examples
    --------
    >>> alert = alert_of(Event(7, 0, "alert", "fc: dead", '{"rule": "dead", "modules": ["fc"]}'))
    >>> alert.rule, alert.modules, alert.severity, alert.began
    ('dead', ('fc',), 'warning', None)
    """
    fields = _detail(event)
    rule = _text(fields.get("rule")) or "unknown"
    return Alert(
        rule=rule,
        step=event.step,
        text=event.text,
        modules=_texts(fields.get("modules")),
        quantities=_texts(fields.get("quantities")),
        view=_text(fields.get("view")) or "lines",
        time_ms=event.time_ms,
        severity=_severity(fields.get("severity"), rule),
        flow=_flow(fields.get("flow")),
        consequence_of=_causes(fields.get("consequence_of"), rule),
        began=_two_steps(fields.get("began")),
    )


def _detail(event: Event) -> dict[str, object]:
    """Return the detail of an event; empty if it is malformed."""
    try:
        detail = json.loads(event.detail)
    except (ValueError, RecursionError):
        detail = None
    return detail if isinstance(detail, dict) else {}


def where(modules: Sequence[str]) -> str:
    """Name some modules in words.

    Examples
    --------
    >>> where(["(root)"]), where(["fc1", "fc2", "fc3"])
    ('the model', 'fc1 and 2 more')
    """
    first = "the model" if modules[0] == ROOT else modules[0]
    return first if len(modules) == 1 else f"{first} and {len(modules) - 1} more"


def began_at(modules: Sequence[str], flow: Flow | None) -> str:
    """Name some modules in words; for a flow, with the one where it began.

    Examples
    --------
    >>> began_at(["b", "a"], "backward"), began_at(["b", "a", "c"], "forward")
    ('began at b, seen in a', 'began at b, seen in a and 1 more')
    >>> began_at(["a", "b"], None), began_at(["a"], "forward"), began_at(["(root)"], None)
    ('at a and 1 more', 'at a', 'at the model')
    """
    if flow is None or len(modules) < 2:
        return f"at {where(modules)}" if modules else "at an unknown place"
    return f"began at {where(modules[:1])}, seen in {where(modules[1:])}"


def _severity(found: object, rule: str) -> Severity:
    """Return the recorded severity; if missing, that of the rule as known here."""
    if found in SEVERITIES:
        return found
    return RULES[rule].severity if rule in RULES else "warning"


def _flow(found: object) -> Flow | None:
    """Return the recorded flow; without one, modules are in definition order."""
    return next((flow for flow in FLOWS if flow == found), None)


def _causes(found: object, rule: str) -> tuple[str, ...]:
    """Return the recorded causes; if missing, those of the rule as known here."""
    if isinstance(found, list):
        return _texts(found)
    return RULES[rule].consequence_of if rule in RULES else ()


def _two_steps(found: object) -> tuple[int, int] | None:
    match found:
        case [int(first), int(last)] if first <= last:
            return first, last
    return None


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""


def _texts(found: object) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, found))) if isinstance(found, list) else ()


def rule_off(name: str, why: str) -> str:
    """Return the text of the event that a rule is off, since its condition raised an error.

    Examples
    --------
    >>> rule_off("odd", "KeyError: 3")
    'alert rule odd is off: KeyError: 3'
    """
    return f"alert rule {name} is off: {why}"


def read_rules_off(events: Iterable[Event]) -> dict[str, str]:
    """Return why rules are off, by their names, as `rule_off` has written it.

    A rule that was replaced or removed afterwards is not among them.

    Examples
    --------
    >>> read_rules_off([Event(3, 0, "error", rule_off("odd", "KeyError: 3"))])
    {'odd': 'KeyError: 3'}
    """
    off: dict[str, str] = {}
    for event in events:
        found = _OFF.fullmatch(event.text) if event.kind == "error" else None
        if found:
            off[found["name"]] = found["why"]
        elif event.kind == RULE_EDIT:
            off.pop(_text(_detail(event).get("rule")), None)
    return off
