"""The alerts of a source as a panel gets them: each once, with its rule and its places."""

from __future__ import annotations

from collections.abc import Sequence

from notebook_probe.alerts.alert import ALERT, Alert, alert_of
from notebook_probe.explorer.messages.wire import VERSION, AlertRow, AlertsMessage
from notebook_probe.record.format.source import Event

__all__ = ["AlertMessages"]

MOST = 200
"""Alerts that a new view gets: the newest."""


class AlertMessages:
    """Says which alerts have come since the last message."""

    def __init__(self) -> None:
        self._n_seen = 0
        self._rows: list[AlertRow] = []
        self._n_sent: int | None = None

    def forget(self) -> None:
        """A view has come that knows none."""
        self._n_sent = None

    def message(self, events: Sequence[Event]) -> AlertsMessage | None:
        """The alerts that the views do not know; None when there are none."""
        if len(events) < self._n_seen:  # another branch of the record is read now
            self._n_seen, self._rows, self._n_sent = 0, [], None
        new = [event for event in events[self._n_seen :] if event.kind == ALERT]
        self._n_seen = len(events)
        self._rows += [alert_row(alert_of(event)) for event in new]
        first, self._n_sent = self._n_sent, len(self._rows)
        if first is None:
            return {"v": VERSION, "type": "alerts", "whole": True, "rows": self._rows[-MOST:]}
        if first == len(self._rows):
            return None
        return {"v": VERSION, "type": "alerts", "whole": False, "rows": self._rows[first:]}


def alert_row(alert: Alert) -> AlertRow:
    return {
        "rule": alert.rule,
        "step": alert.step,
        "modules": list(alert.modules),
        "quantities": list(alert.quantities),
        "view": alert.view,
        "text": alert.text,
        "severity": alert.severity,
    }
