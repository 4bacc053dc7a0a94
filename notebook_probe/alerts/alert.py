"""What a rule has found: once, at a step, in words; kept as an event of the record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from notebook_probe.alerts.rule import RULES, SEVERITIES, Severity
from notebook_probe.record.format.source import ROOT, Event

__all__ = ["ALERT", "Alert", "alert_of", "where"]

ALERT = "alert"
"""The kind of its event."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule's condition, fulfilled.

    Attributes
    ----------
    rule : str
        Name of the rule.
    step : int
        Of the row with which the condition was fulfilled.
    text : str
        The sentence, with the place and the numbers; those of the first of `modules`.
    modules : tuple of str
        Where, in definition order; ``"(root)"`` for the model as a whole.
    quantities : tuple of str
        What the condition is about: series of the record.
    view : str
        The view of the Explorer that explains it.
    time_ms : int
        When it was found, milliseconds since 1970; 0 when nobody was waiting for it.
    severity : "warning" or "severe"
        That of the rule.
    """

    rule: str
    step: int
    text: str
    modules: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    view: str = "lines"
    time_ms: int = 0
    severity: Severity = "warning"

    @property
    def module(self) -> str:
        """The first of `modules`, as ``run.data.sel(module=...)`` takes it."""
        return self.modules[0] if self.modules else ROOT

    @property
    def place(self) -> str:
        """Where, in words."""
        return where(self.modules) if self.modules else ""

    @property
    def sentence(self) -> str:
        """The text without the place."""
        return self.text.removeprefix(f"{self.place}: ")

    @property
    def detail(self) -> str:
        """What a program needs to know of it, for its event: JSON."""
        return json.dumps(
            {
                "rule": self.rule,
                "modules": self.modules,
                "quantities": self.quantities,
                "view": self.view,
                "severity": self.severity,
            }
        )

    def __str__(self) -> str:
        return f"step {self.step}: {self.rule} at {self.text}"


def alert_of(event: Event) -> Alert:
    """The alert that an event tells of; of a malformed detail its sentence is left.

    Examples
    --------
    >>> alert_of(Event(7, 0, "alert", "fc: 60 % dead", '{"rule": "dead", "modules": ["fc"]}'))
    Alert(rule='dead', step=7, text='fc: 60 % dead', modules=('fc',), quantities=(), view='lines', \
time_ms=0, severity='warning')
    """
    try:
        detail = json.loads(event.detail)
    except (ValueError, RecursionError):
        detail = None
    fields = detail if isinstance(detail, dict) else {}
    rule = _text(fields.get("rule")) or "unknown"
    return Alert(
        rule,
        event.step,
        event.text,
        _texts(fields.get("modules")),
        _texts(fields.get("quantities")),
        _text(fields.get("view")) or "lines",
        event.time_ms,
        _severity(fields.get("severity"), rule),
    )


def where(modules: Sequence[str]) -> str:
    """Some modules in words.

    Examples
    --------
    >>> where(["(root)"]), where(["fc1", "fc2", "fc3"])
    ('the model', 'fc1 and 2 more')
    """
    first = "the model" if modules[0] == ROOT else modules[0]
    return first if len(modules) == 1 else f"{first} and {len(modules) - 1} more"


def _severity(found: object, rule: str) -> Severity:
    """As it was written; of a record that does not say, that of the rule as it is known here."""
    if found in SEVERITIES:
        return found
    return RULES[rule].severity if rule in RULES else "warning"


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""


def _texts(found: object) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, found))) if isinstance(found, list) else ()
