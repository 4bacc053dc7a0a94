"""The alerts of a run, as one looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import overload

from notebook_probe.alerts.alert import ALERT, Alert, alert_of
from notebook_probe.record.format.source import Event
from notebook_probe.tabular import html_table

__all__ = ["Alerts", "read_alerts"]


class Alerts(Sequence[Alert]):
    """Alerts in the order of their steps; prints one sentence per line, in a notebook a table.

    Examples
    --------
    >>> print(Alerts([Alert("dead_units", 250, "fc1: 60 % dead", ("fc1",))]))
    step 250: dead_units at fc1: 60 % dead
    """

    def __init__(self, alerts: Iterable[Alert] = ()) -> None:
        self._alerts = tuple(sorted(alerts, key=lambda alert: alert.step))

    def of(self, rule: str) -> Alerts:
        """Those of one rule."""
        return Alerts(alert for alert in self if alert.rule == rule)

    @overload
    def __getitem__(self, index: int) -> Alert: ...
    @overload
    def __getitem__(self, index: slice) -> Alerts: ...
    def __getitem__(self, index: int | slice) -> Alert | Alerts:
        return Alerts(self._alerts[index]) if isinstance(index, slice) else self._alerts[index]

    def __len__(self) -> int:
        return len(self._alerts)

    def __eq__(self, other: object) -> bool:
        return self._alerts == other._alerts if isinstance(other, Alerts) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._alerts)

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no alerts"

    def _repr_html_(self) -> str:
        head = {"step": "", "rule": "", "where": "8em", "what": "24em"}
        rows = ((str(one.step), *map(escape, (one.rule, one.place, one.sentence))) for one in self)
        return html_table(head, rows) if self else "<p>no alerts</p>"


def read_alerts(events: Iterable[Event]) -> Alerts:
    """The alerts that a record's events tell of."""
    return Alerts(alert_of(event) for event in events if event.kind == ALERT)
