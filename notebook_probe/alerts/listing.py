"""The alerts of a run, as one looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Self, overload

from notebook_probe.alerts.alert import ALERT, REMARK, Alert, alert_of, read_rules_off
from notebook_probe.alerts.causes import Cause, causes
from notebook_probe.printable import printable
from notebook_probe.record.format.source import Event
from notebook_probe.tabular import html_table

__all__ = ["Alerts", "read_alerts", "read_remarks"]


class Alerts(Sequence[Alert]):
    """Alerts in the order of their steps.

    Prints a sentence for each finding, its consequences indented below it; in a notebook a table.
    Below them are the rules that are off, since their condition raised an error.

    Attributes
    ----------
    off : mapping of str to str
        Error of each rule that is off, by its name.

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

    def __init__(
        self,
        alerts: Iterable[Alert] = (),
        remarks: Iterable[Alert] = (),
        off: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._alerts = tuple(sorted(alerts, key=lambda alert: alert.step))
        self._remarks = tuple(remarks)
        self.off = off

    def of(self, rule: str) -> Self:
        """Return the findings of one rule."""
        off = {name: why for name, why in self.off.items() if name == rule}
        return type(self)((alert for alert in self if alert.rule == rule), off=off)

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
        lines = [f"{'  ' * depth}{one}" for depth, one in self._lines()] or [self._none]
        return "\n".join(map(printable, (*lines, *self._off_lines())))

    def _repr_html_(self) -> str:
        head = {"step": "", "rule": "", "where": "8em", "what": "24em"}
        rows = (_cells(depth, one) for depth, one in self._lines())
        table = html_table(head, rows) if self else f"<p>{self._none}</p>"
        return table + "".join(f"<p>{escape(line)}</p>" for line in self._off_lines())

    def _lines(self) -> Iterator[tuple[int, Cause]]:
        for cause in self.causes:
            yield from cause.lines()

    def _off_lines(self) -> Iterator[str]:
        yield from (f"rule {name} is off: {why}" for name, why in self.off.items())


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
    """Return the alerts in a record's events, and the rules that are off."""
    events = tuple(events)
    found = [alert_of(event) for event in events if event.kind in (ALERT, REMARK)]
    remarks = [one for one in found if one.is_remark]
    return Alerts((one for one in found if not one.is_remark), remarks, read_rules_off(events))


def read_remarks(events: Iterable[Event]) -> Alerts:
    """Return the findings that may be intended."""
    return Remarks(alert_of(event) for event in events if event.kind == REMARK)
