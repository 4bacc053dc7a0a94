"""Find events worth a message, and hold back repetitions of a moment ago."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from notebook_probe.alerts.alert import ALERT, REMARK, Alert, alert_of
from notebook_probe.alerts.rule import SEVERITIES
from notebook_probe.errors import near
from notebook_probe.printable import counted
from notebook_probe.record.format.source import Event

__all__ = [
    "DEFAULT",
    "EVERY_S",
    "STALLED_S",
    "Lookout",
    "Message",
    "Occasion",
    "RunMoment",
    "checked_occasions",
]

Occasion: TypeAlias = Literal["remark", "warning", "severe", "end", "stalled"]
OCCASIONS: tuple[Occasion, ...] = get_args(Occasion)
DEFAULT: tuple[Occasion, ...] = ("severe", "end", "stalled")
EVERY_S = STALLED_S = 600.0
MANY_STEPS = 20
"""Usual times of a step without one after which a training has stalled, if that is longer."""


@dataclass(frozen=True, slots=True)
class RunMoment:
    """Steps, events and state of a run at one moment.

    Attributes
    ----------
    events : sequence of Event
        All events of the record.
    step : int
        Number of completed updates.
    is_under_way : bool
        A step was trained since the last loop ended.
    is_paused, is_closed : bool
    failure : str
        Error that ended the loop, if there was one.
    step_s : float
        Usual duration of a step; NaN if unknown.
    now_s : float
        Time of a clock that never goes back.
    """

    events: Sequence[Event]
    step: int
    is_under_way: bool
    is_paused: bool
    is_closed: bool
    failure: str
    step_s: float
    now_s: float


@dataclass(frozen=True, slots=True)
class Message:
    """Message about an alert, an end or a stall.

    Attributes
    ----------
    cause : str
        Name of the rule, or ``"end"`` or ``"stalled"``.
    step : int
    title, text : str
    series : tuple of str, optional
        Module and quantity to draw.
    """

    cause: str
    step: int
    title: str
    text: str
    series: tuple[str, str] | None = None


def checked_occasions(on: Sequence[str]) -> frozenset[str]:
    """Return the occasions of messages.

    Raises
    ------
    TypeError, ValueError
        For anything that is no occasion.

    Examples
    --------
    >>> sorted(checked_occasions(["severe", "end"]))
    ['end', 'severe']
    """
    if isinstance(on, str):
        raise TypeError(f"on={on!r}: a list of {', '.join(OCCASIONS)} is expected")
    for one in on:
        if one not in OCCASIONS:
            raise ValueError(f"on has {one!r}; {near(one, OCCASIONS)}")
    return frozenset(on)


class Lookout:
    """Comparison of a run with its state a moment ago.

    Parameters
    ----------
    name : str
        Name of the run.
    on : collection of str
        Occasions. One of the severities includes those above it.
    every_s : float
        Minimum seconds between two messages of one cause.
    stalled_s : float
        Seconds without a step after which a training has stalled.
    first : RunMoment
        State at the start; earlier events are not reported.
    """

    def __init__(
        self, name: str, on: frozenset[str], every_s: float, stalled_s: float, first: RunMoment
    ) -> None:
        self._name, self._on = name, on
        self._every_s, self._stalled_s = every_s, stalled_s
        ranks = [SEVERITIES.index(one) for one in SEVERITIES if one in on]
        self._least = min(ranks, default=len(SEVERITIES))
        self._n_events = len(first.events)
        self._ended_at, self._failure = first.step, first.failure
        self._step, self._moved_s = first.step, first.now_s
        self._has_stalled = False
        self._said: dict[str, float] = {}
        self._held_back: Counter[str] = Counter()

    def messages(self, seen: RunMoment) -> list[Message]:
        """Return the messages about what is new."""
        found = [*self._alerts(seen), *self._stalls(seen), *self._ends(seen)]
        return [self._counted(one) for one in found if self._is_due(one.cause, seen.now_s)]

    def _alerts(self, seen: RunMoment) -> Iterator[Message]:
        new, self._n_events = seen.events[self._n_events :], len(seen.events)
        for event in new:
            if event.kind in (ALERT, REMARK):
                alert = alert_of(event)
                if SEVERITIES.index(alert.severity) >= self._least:
                    yield self._of_alert(alert)

    def _of_alert(self, alert: Alert) -> Message:
        title = f"{self._name}: {alert.rule} at step {alert.step}"
        series = (alert.module, alert.quantities[0]) if alert.quantities else None
        return Message(alert.rule, alert.step, title, f"{alert.severity}: {alert.text}", series)

    def _stalls(self, seen: RunMoment) -> Iterator[Message]:
        if seen.step != self._step or seen.is_paused or not seen.is_under_way:
            self._step, self._moved_s, self._has_stalled = seen.step, seen.now_s, False
            return
        still_s = seen.now_s - self._moved_s
        # Of an unknown time of a step the comparison is false.
        is_usual = still_s < MANY_STEPS * seen.step_s
        if "stalled" in self._on and still_s >= self._stalled_s and not is_usual:
            is_new, self._has_stalled = not self._has_stalled, True
            if is_new:
                text = f"no step for {still_s / 60:.0f} minutes; {seen.step} are complete"
                yield self._of("stalled", "stalled", seen.step, text)

    def _ends(self, seen: RunMoment) -> Iterator[Message]:
        failure, self._failure = self._failure, seen.failure
        is_over = seen.is_closed or not seen.is_under_way
        is_new = seen.step > self._ended_at
        if is_over:
            self._ended_at = seen.step
        if "end" not in self._on:
            return
        if seen.failure and seen.failure != failure:
            yield self._of("end", "failed", seen.step, seen.failure)
        elif is_over and is_new:
            text = f"the training ended after {counted(seen.step, 'step')}"
            yield self._of("end", "ended", seen.step, text)

    def _of(self, cause: str, what: str, step: int, text: str) -> Message:
        return Message(cause, step, f"{self._name}: {what} at step {step}", text)

    def _is_due(self, cause: str, now_s: float) -> bool:
        if now_s - self._said.get(cause, -self._every_s) < self._every_s:
            self._held_back[cause] += 1
            return False
        self._said[cause] = now_s
        return True

    def _counted(self, message: Message) -> Message:
        n = self._held_back.pop(message.cause, 0)
        if not n:
            return message
        text = f"{message.text}\n{n} more of this kind since the last message"
        return Message(message.cause, message.step, message.title, text, message.series)
