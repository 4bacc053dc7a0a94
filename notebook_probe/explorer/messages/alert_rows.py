"""The alerts and remarks of a source for a panel: each alert once, with its causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypedDict

from notebook_probe.alerts.alert import ALERT, REMARK, Alert, alert_of, began_at
from notebook_probe.alerts.causes import NEAR, Cause, causes
from notebook_probe.alerts.rule import Severity
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.record.format.source import Event

__all__ = ["AlertMessages", "AlertRow", "AlertsMessage", "FindingRow", "RemarkRow"]

MOST = 200
"""Alerts that a new view gets, and that are put in order of their causes: the newest."""


MOST_REMARKS = 50
"""Remarks that are sent: the newest."""


class AlertRow(TypedDict):
    """One finding of a rule."""

    number: int
    """Counted from 0 in the order in which they were found."""
    rule: str
    step: int
    modules: list[str]
    """Affected modules; the one where it started is first."""
    quantities: list[str]
    """Quantities in the rule's condition."""
    view: str
    """Name of the view that explains it."""
    text: str
    """A sentence with the place and the numbers."""
    severity: Severity


class AlertsMessage(TypedDict):
    """New alerts."""

    v: int
    type: Literal["alerts"]
    whole: bool
    """True if these are all alerts, as a new view needs them; else they follow earlier ones."""
    rows: list[AlertRow]
    findings: list[FindingRow]
    """Causes among the newest alerts, each followed by its effects; sent in full."""
    remarks: list[RemarkRow]
    """The newest findings that may be intended; sent in full."""


class FindingRow(TypedDict):
    """The alerts of one rule that belong together."""

    first: int
    """Number of the first alert."""
    modules: list[str]
    """Modules of all its alerts."""
    where: str
    """Place in words: ``"began at b, seen in a"``, ``"at a"``."""
    sentence: str
    """Sentence of the first alert, without the place."""
    cause: int | None
    """Number of the alert that all began with; None for a cause."""
    after: str
    """Remark that explains a cause, such as a learning rate that rose shortly before; or empty."""


class RemarkRow(TypedDict):
    """A finding that may be intended."""

    step: int
    modules: list[str]
    where: str
    """Place as text, as in a finding."""
    sentence: str
    """The finding, without the place."""


class AlertMessages:
    """Messages about new alerts, and which alert caused which."""

    def __init__(self) -> None:
        self._n_seen = 0
        self._alerts: list[Alert] = []
        self._remarks: list[Alert] = []
        self._n_sent: int | None = None

    def forget(self) -> None:
        """Send all alerts next: a new view has none."""
        self._n_sent = None

    def message(self, events: Sequence[Event]) -> AlertsMessage | None:
        """Return the alerts that the views do not know; None when there are none."""
        if len(events) < self._n_seen:  # another branch of the record is read now
            self._n_seen, self._alerts, self._remarks, self._n_sent = 0, [], [], None
        # Events are only ever appended, so those seen before need not be read again.
        new = events[self._n_seen :]
        self._n_seen = len(events)
        self._alerts += (alert_of(event) for event in new if event.kind == ALERT)
        remarks = [alert_of(event) for event in new if event.kind == REMARK]
        self._remarks += remarks
        first, self._n_sent = self._n_sent, len(self._alerts)
        if first == len(self._alerts) and not remarks:
            return None
        # The number of an alert is its place in the whole list, also where older ones are left out.
        newest = max(0, len(self._alerts) - MOST)
        begin = newest if first is None else first
        return {
            "v": VERSION,
            "type": "alerts",
            "whole": first is None,
            "rows": [_row(i, self._alerts[i]) for i in range(begin, len(self._alerts))],
            "findings": [*_findings(self._alerts[newest:], newest, self._remarks)],
            "remarks": [*map(_remark, self._remarks[-MOST_REMARKS:])],
        }


def _row(number: int, alert: Alert) -> AlertRow:
    return {
        "number": number,
        "rule": alert.rule,
        "step": alert.step,
        "modules": list(alert.modules),
        "quantities": list(alert.quantities),
        "view": alert.view,
        "text": alert.text,
        "severity": alert.severity,
    }


def _remark(one: Alert) -> RemarkRow:
    return {
        "step": one.step,
        "modules": list(one.modules),
        "where": began_at(one.modules, one.flow),
        "sentence": one.sentence,
    }


def _findings(
    alerts: Sequence[Alert], first: int, remarks: Sequence[Alert]
) -> Iterator[FindingRow]:
    """Yield causes by their steps, each followed by its effects."""
    # By identity: two alerts may be equal, and each has a number.
    numbers = {id(alert): number for number, alert in enumerate(alerts, first)}
    explained = _explained(alerts, remarks)

    def row(one: Cause, cause: Cause | None) -> FindingRow:
        return {
            "first": numbers[id(one.alert)],
            "modules": list(one.modules),
            "where": one.where,
            "sentence": one.alert.sentence,
            "cause": None if cause is None else numbers[id(cause.alert)],
            "after": "" if cause else explained.get(id(one.alert), ""),
        }

    for cause in causes(alerts):
        yield row(cause, None)
        yield from (row(one, cause) for one in cause.below)


def _explained(alerts: Sequence[Alert], remarks: Sequence[Alert]) -> dict[int, str]:
    """Return the sentence of the remark shortly before, by the identity of what it explains."""
    return {
        id(alert): cause.alert.sentence
        for cause in (causes((*alerts, *remarks)) if remarks else ())
        if cause.alert.is_remark
        for alert in cause
        if 0 <= alert.step - cause.alert.step <= NEAR
    }
