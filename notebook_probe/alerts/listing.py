"""The alerts of a run, as one looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import overload

from notebook_probe.alerts.alert import ALERT, Alert, alert_of
from notebook_probe.alerts.causes import Cause, causes
from notebook_probe.record.format.source import Event
from notebook_probe.tabular import html_table

__all__ = ["Alerts", "read_alerts"]


class Alerts(Sequence[Alert]):
    """Alerts in the order of their steps.

    Prints a sentence for each finding, what came of it indented below it; in a notebook a table.

    Examples
    --------
    >>> high = Alert("lr_high", 100, "the model: large steps", ("(root)",))
    >>> dead = Alert("dead_units", 150, "fc1: 60 % dead", ("fc1",), consequence_of=("lr_high",))
    >>> Alerts([high, dead])
    step 100: lr_high at the model: large steps
      step 150: dead_units at fc1: 60 % dead
    >>> [alert.rule for alert in Alerts([dead, high])]
    ['lr_high', 'dead_units']
    """

    def __init__(self, alerts: Iterable[Alert] = ()) -> None:
        self._alerts = tuple(sorted(alerts, key=lambda alert: alert.step))

    def of(self, rule: str) -> Alerts:
        """Those of one rule."""
        return Alerts(alert for alert in self if alert.rule == rule)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Those that no other one explains, each with what came of it.

        Every alert is in one of them, once.

        Examples
        --------
        >>> dead = [Alert("dead_units", step, "...", (name,), flow="forward")
        ...         for step, name in [(250, "fc1"), (260, "fc2"), (900, "fc3")]]
        >>> first, second = Alerts(dead).causes
        >>> first.where, len(first.later), second.where
        ('began at fc1, seen in fc2', 1, 'at fc3')
        """
        return causes(self)

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
        lines = (f"{'  ' * depth}{one}" for depth, one in self._lines())
        return "\n".join(lines) or "no alerts"

    def _repr_html_(self) -> str:
        head = {"step": "", "rule": "", "where": "8em", "what": "24em"}
        rows = (_cells(depth, one) for depth, one in self._lines())
        return html_table(head, rows) if self else "<p>no alerts</p>"

    def _lines(self) -> Iterator[tuple[int, Cause]]:
        for cause in self.causes:
            yield from cause.lines()


def _cells(depth: int, one: Cause) -> list[str]:
    indent, alert = "&emsp;" * depth, one.alert
    place = one.where.removeprefix("at ")
    return [str(alert.step), indent + escape(alert.rule), escape(place), escape(alert.sentence)]


def read_alerts(events: Iterable[Event]) -> Alerts:
    """The alerts that a record's events tell of."""
    return Alerts(alert_of(event) for event in events if event.kind == ALERT)
