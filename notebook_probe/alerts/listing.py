"""The alerts of a run, as one looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Self, overload

from notebook_probe.alerts.alert import ALERT, REMARK, Alert, alert_of
from notebook_probe.alerts.causes import Cause, causes
from notebook_probe.printable import printable
from notebook_probe.record.format.source import Event
from notebook_probe.tabular import html_table

__all__ = ["Alerts", "read_alerts", "read_remarks"]


class Alerts(Sequence[Alert]):
    """Alerts in the order of their steps.

    Prints a sentence for each finding, its consequences indented below it; in a notebook a table.

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

    _none = "no alerts"

    def __init__(self, alerts: Iterable[Alert] = (), remarks: Iterable[Alert] = ()) -> None:
        self._alerts = tuple(sorted(alerts, key=lambda alert: alert.step))
        self._remarks = tuple(remarks)

    def of(self, rule: str) -> Self:
        """Return the findings of one rule."""
        return type(self)(alert for alert in self if alert.rule == rule)

    def until(self, step: int) -> Self:
        """Return the findings up to a step, this included.

        Examples
        --------
        >>> Alerts([Alert("lr_high", 100, "..."), Alert("dead_units", 150, "...")]).until(149)
        step 100: lr_high at an unknown place: ...
        """
        kept = (one for one in self._alerts if one.step <= step)
        return type(self)(kept, (one for one in self._remarks if one.step <= step))

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Alerts without a cause, each with its consequences.

        Every alert is in one of them, once. A remark, such as a learning rate that rose, is one if
        an alert is its consequence.

        Examples
        --------
        >>> dead = [Alert("dead_units", step, "...", (name,), flow="forward")
        ...         for step, name in [(250, "fc1"), (260, "fc2"), (900, "fc3")]]
        >>> first, second = Alerts(dead).causes
        >>> first.where, len(first.later), second.where
        ('began at fc1, seen in fc2', 1, 'at fc3')
        """
        found = causes((*self, *self._remarks))
        return tuple(one for one in found if not all(alert.is_remark for alert in one))

    @overload
    def __getitem__(self, index: int) -> Alert: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Alert | Self:
        return type(self)(self._alerts[index]) if isinstance(index, slice) else self._alerts[index]

    def __len__(self) -> int:
        return len(self._alerts)

    def __eq__(self, other: object) -> bool:
        return self._alerts == other._alerts if isinstance(other, Alerts) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._alerts)

    def __repr__(self) -> str:
        lines = (printable(f"{'  ' * depth}{one}") for depth, one in self._lines())
        return "\n".join(lines) or self._none

    def _repr_html_(self) -> str:
        head = {"step": "", "rule": "", "where": "8em", "what": "24em"}
        rows = (_cells(depth, one) for depth, one in self._lines())
        return html_table(head, rows) if self else f"<p>{self._none}</p>"

    def _lines(self) -> Iterator[tuple[int, Cause]]:
        for cause in self.causes:
            yield from cause.lines()


class Remarks(Alerts):
    """Findings that may be intended, in the order of their steps."""

    _none = "no remarks"

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Remarks without a cause, each with its consequences."""
        return causes(self)


def _cells(depth: int, one: Cause) -> list[str]:
    indent, alert = "&emsp;" * depth, one.alert
    place = one.where.removeprefix("at ")
    return [str(alert.step), indent + escape(alert.rule), escape(place), escape(alert.sentence)]


def read_alerts(events: Iterable[Event]) -> Alerts:
    """Return the alerts in a record's events."""
    found = [alert_of(event) for event in events if event.kind in (ALERT, REMARK)]
    remarks = [one for one in found if one.is_remark]
    return Alerts((one for one in found if not one.is_remark), remarks)


def read_remarks(events: Iterable[Event]) -> Alerts:
    """Return the findings that may be intended."""
    return Remarks(alert_of(event) for event in events if event.kind == REMARK)
