"""The alerts of a source as a panel gets them: each once, and which of them came of which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from notebook_probe.alerts.alert import ALERT, Alert, alert_of
from notebook_probe.alerts.causes import Cause, causes
from notebook_probe.explorer.messages.wire import VERSION, AlertRow, AlertsMessage, FindingRow
from notebook_probe.record.format.source import Event

__all__ = ["AlertMessages"]

MOST = 200
"""Alerts that a new view gets, and that are put in order of their causes: the newest."""


class AlertMessages:
    """Says which alerts have come since the last message, and what has come of what."""

    def __init__(self) -> None:
        self._n_seen = 0
        self._alerts: list[Alert] = []
        self._n_sent: int | None = None

    def forget(self) -> None:
        """A view has come that knows none."""
        self._n_sent = None

    def message(self, events: Sequence[Event]) -> AlertsMessage | None:
        """The alerts that the views do not know; None when there are none."""
        if len(events) < self._n_seen:  # another branch of the record is read now
            self._n_seen, self._alerts, self._n_sent = 0, [], None
        new = [event for event in events[self._n_seen :] if event.kind == ALERT]
        self._n_seen = len(events)
        self._alerts += map(alert_of, new)
        first, self._n_sent = self._n_sent, len(self._alerts)
        if first == len(self._alerts):
            return None
        newest = max(0, len(self._alerts) - MOST)
        begin = newest if first is None else first
        return {
            "v": VERSION,
            "type": "alerts",
            "whole": first is None,
            "rows": [_row(i, self._alerts[i]) for i in range(begin, len(self._alerts))],
            "findings": [*_findings(self._alerts[newest:], newest)],
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


def _findings(alerts: Iterable[Alert], first: int) -> Iterator[FindingRow]:
    """Causes by their steps, each followed by all that came of it."""
    numbers = {id(alert): number for number, alert in enumerate(alerts, first)}

    def row(one: Cause, cause: Cause | None) -> FindingRow:
        return {
            "first": numbers[id(one.alert)],
            "modules": list(one.modules),
            "where": one.where,
            "sentence": one.alert.sentence,
            "cause": None if cause is None else numbers[id(cause.alert)],
        }

    for cause in causes(alerts):
        yield row(cause, None)
        yield from (row(one, cause) for one in cause.below)
