"""The breakpoints of a run: what is armed, and what was met since the training passed last.

Rows and alerts may come on any thread, while the training thread asks; a lock keeps them in order.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from notebook_probe.alerts import Alert
from notebook_probe.alerts.causes import may_come_of
from notebook_probe.alerts.sentence import sentence
from notebook_probe.errors import BreakpointError, UnknownNameError
from notebook_probe.probes.step.measured import MeasuredStep
from notebook_probe.probes.step.sink import EventSink
from notebook_probe.record.views.own_names import OwnNames
from notebook_probe.run.breakpoints.breakpoint import Breakpoint
from notebook_probe.run.breakpoints.conditions import (
    SEVERE,
    AtStep,
    Before,
    Hit,
    OnAlert,
    OnError,
    OnNan,
    OnSeries,
    PauseCondition,
    SeriesTrack,
)
from notebook_probe.run.breakpoints.requests import (
    AddBreakpoint,
    BreakpointInfo,
    EditBreakpoint,
    RemoveBreakpoint,
)
from notebook_probe.run.breakpoints.step_numbers import StepNumbers
from notebook_probe.run.failure import EndReason

__all__ = ["BREAKPOINT", "PAUSE", "Breakpoints"]

PAUSE, BREAKPOINT = "pause", "breakpoint"
"""Kinds of events: training was paused; a breakpoint was changed."""

MOST_SEVERE = 64
"""Number of remembered alerts, whose consequences do not count as new."""


@dataclass(slots=True)
class _Armed:
    """A breakpoint with its progress."""

    info: BreakpointInfo
    track: SeriesTrack | None = None
    was_bad: bool = False
    """For `OnNan`: the row before had a value that was not finite."""
    severe: list[Alert] = field(default_factory=list)
    """For `OnAlert`: the severe alerts so far."""


@dataclass(slots=True)
class _Pause:
    """Present pause and its reasons."""

    text: str = ""
    hits: Sequence[Hit] = ()
    ids: frozenset[int] = field(default_factory=frozenset)


class Breakpoints:
    """Breakpoints of one run.

    Parameters
    ----------
    events : EventSink
    upcoming : callable
        The step whose update is the next to happen.
    own_names : callable
        Gives the names under which logged series are read whose stored name another series has.
    acts_here : bool
        True if this process pauses: of several processes the first one does; the others wait for it
        anyway.

    Attributes
    ----------
    wake : callable
        Makes the next boundary ask; set once there is a gate.
    """

    def __init__(
        self,
        events: EventSink,
        upcoming: Callable[[], int],
        own_names: Callable[[], OwnNames],
        *,
        acts_here: bool = True,
    ) -> None:
        self._events, self._upcoming, self._acts_here = events, upcoming, acts_here
        self.wake: Callable[[], None] = lambda: None
        # Reentrant: `passing` calls `taken`.
        self._lock = threading.RLock()
        self._armed: tuple[_Armed, ...] = ()
        self._numbers = StepNumbers(own_names)
        self._hits: list[Hit] = []
        self._pause = _Pause()
        self._last_id = 0

    # ---------------------------------------------------------------- the list

    def add(self, condition: PauseCondition) -> Breakpoint:
        """Add a condition; an equal one returns the existing breakpoint."""
        with self._lock:
            # A cell that is run again adds the same condition, which must not pause twice.
            same = next((one for one in self._armed if one.info.condition == condition), None)
            if same is not None:
                self._set(same, armed=True)
                return Breakpoint(same.info.id, condition, self)
            self._last_id += 1
            self._check(condition)
            new = BreakpointInfo(
                self._last_id, condition, True, pauses=False, last_step=-1, n_met=0, note=self._note
            )
            # Replaced, not changed: `infos` walks it without the lock.
            self._armed = (*self._armed, _tracked(_Armed(new)))
            self.wake()
            self._say(new, "pauses when", "added")
        return Breakpoint(new.id, condition, self)

    def edit(self, id: int, armed: bool | None = None, number: float | None = None) -> str:
        """Arm or disarm a breakpoint, or change its number; return what was done, as text.

        Raises
        ------
        UnknownNameError, BreakpointError
            There is none of this id; a number that cannot be.
        """
        with self._lock:
            one = self._one(id)
            if number is not None:
                condition = one.info.condition.but(number)
                self._check(condition)
                one.info = replace(one.info, condition=condition)
                # Progress towards the old number means nothing for the new one.
                _tracked(one)
                self._say(one.info, "pauses when", "changed")
            if armed is not None:
                self._set(one, armed)
            return one.info.condition.text

    def remove(self, id: int) -> str:
        """Remove a breakpoint; return what was done, as text."""
        with self._lock:
            gone = self._one(id)
            self._armed = tuple(one for one in self._armed if one is not gone)
            self._say(gone.info, "no longer pauses when", "removed")
            return f"removed: {gone.info.condition.text}"

    def acts(self) -> Mapping[type, Callable[[Any, int], str]]:
        """Return the function of each kind of request, which returns what was done, as text."""
        return {
            AddBreakpoint: lambda one, _: f"pauses when: {self.add(one.condition).condition.text}",
            EditBreakpoint: lambda one, _: self.edit(one.id, one.armed, one.number),
            RemoveBreakpoint: lambda one, _: self.remove(one.id),
        }

    def infos(self) -> list[BreakpointInfo]:
        """Return all breakpoints, in the order in which they were added."""
        # Read once, as the training thread replaces it.
        pausing = self._pause.ids
        return [replace(one.info, pauses=one.info.id in pausing) for one in self._armed]

    def info(self, id: int) -> BreakpointInfo | None:
        """Return one breakpoint; None if it was removed."""
        return next((info for info in self.infos() if info.id == id), None)

    def handles(self) -> list[Breakpoint]:
        """Return handles of all breakpoints."""
        return [Breakpoint(one.info.id, one.info.condition, self) for one in self._armed]

    # ---------------------------------------------------------------- what happens

    @property
    def is_idle(self) -> bool:
        """True if there are none, and nothing was met: then a step costs only this check."""
        return not (self._armed or self._hits)

    def waits_for(self, *kinds: type[PauseCondition]) -> bool:
        """Return whether one of these kinds is armed, so that it must be checked in time."""
        return any(isinstance(one.info.condition, kinds) for one in self._acting())

    def waits_before(self, update: Before) -> bool:
        """Return whether a breakpoint that pauses there is armed."""
        return any(one.info.condition.before == update for one in self._acting())

    def see(self, step: MeasuredStep, before: Before = "step") -> None:
        """Take in the numbers of a step, those known so far when its update is still to come."""
        if not self.waits_for(OnSeries, OnNan) or step.of_state:
            return
        with self._lock:
            for one in self._acting():
                if one.info.condition.before == before:
                    self._hits += self._met(one, step)

    def told(self, alert: Alert) -> None:
        """Take in an alert.

        A consequence of a severe alert is no second reason to pause for "severe"; a named rule
        pauses whatever its cause.
        """
        with self._lock:
            for one in self._acting():
                condition = one.info.condition
                if isinstance(condition, OnAlert):
                    severe = SEVERE in condition.rules and _is_newly_severe(one, alert)
                    if severe or alert.rule in condition.rules:
                        self._hits.append(_of_alert(one.info, alert))

    def taken(self) -> list[Hit]:
        """Return and forget the conditions met so far."""
        with self._lock:
            # Swapped under the lock, so that a hit on another thread is neither lost nor seen
            # twice.
            found, self._hits = self._hits, []
            return found

    def passing(self, step: int) -> Sequence[Hit]:
        """Return and forget the conditions met, before training starts ``step``."""
        with self._lock:
            found = self.taken()
            for one in self._acting():
                condition = one.info.condition
                if isinstance(condition, AtStep) and condition.step == step:
                    found.append(Hit(one.info.id, condition, step, "", threshold=float(step)))
            return found

    def raised(self, step: int, error: BaseException) -> Sequence[Hit]:
        """Return the breakpoints that an exception of the loop meets."""
        failure, more = EndReason.of(error), {"error": type(error).__name__}
        return [
            Hit(
                one.info.id,
                one.info.condition,
                step,
                failure.text,
                more=more,
                traceback=failure.traceback,
            )
            for one in self._acting()
            if isinstance(one.info.condition, OnError)
        ]

    def paused(self, hits: Sequence[Hit], text: str) -> None:
        """Note that these pause training; an event describes the first."""
        with self._lock:
            self._pause = _Pause(text, tuple(hits), frozenset(hit.id for hit in hits))
            for hit in hits:
                one = next((one for one in self._armed if one.info.id == hit.id), None)
                if one is not None:
                    one.info = replace(one.info, last_step=hit.step, n_met=one.info.n_met + 1)
        self._events.event(hits[0].step, PAUSE, text, hits[0].detail)

    def pass_by(self, hits: Sequence[Hit], text: str) -> None:
        """Note that training continues past these, as nothing could end a pause."""
        why = f"not {text}: nothing could resume it"
        self._events.event(hits[0].step, PAUSE, why, hits[0].detail)

    def resumed(self) -> None:
        """Note that training continues."""
        self._pause = _Pause()

    @property
    def pause_reason(self) -> str:
        """Reason of the present pause; empty while training."""
        return self._pause.text

    @property
    def traceback(self) -> str:
        """Traceback of the exception that paused training; empty without one."""
        return self._pause.hits[0].traceback if self._pause.hits else ""

    # ---------------------------------------------------------------- inside

    def _acting(self) -> list[_Armed]:
        return [one for one in self._armed if one.info.armed] if self._acts_here else []

    def _met(self, one: _Armed, step: MeasuredStep) -> Iterator[Hit]:
        """Yield the hits of a breakpoint at a measured step."""
        condition = one.info.condition
        if isinstance(condition, OnSeries):
            value = self._numbers.of(step, condition.module, condition.quantity)
            if value is not None and one.track is not None and one.track.see(step.step, value):
                yield _of_series(one.info, condition, step.step, value)
        elif isinstance(condition, OnNan):
            bad = next(self._numbers.not_finite(step), None)
            # Only the first bad row pauses; else it would pause at each step until weights recover.
            is_new, one.was_bad = bad is not None and not one.was_bad, bad is not None
            if bad is not None and is_new:
                series = _series(bad.module, bad.name)
                what = sentence("{series} is {value:.3g}", {"series": series, "value": bad.value})
                yield Hit(
                    id=one.info.id,
                    condition=condition,
                    step=step.step,
                    what=what,
                    module=bad.module,
                    quantity=bad.name,
                    value=bad.value,
                )

    def _check(self, condition: PauseCondition) -> None:
        if isinstance(condition, AtStep) and condition.step < self._upcoming():
            raise BreakpointError(
                f"step {condition.step} has passed; the next one is {self._upcoming()}"
            )

    def _one(self, id: int) -> _Armed:
        found = next((one for one in self._armed if one.info.id == id), None)
        if found is None:
            raise UnknownNameError("this breakpoint was removed; run.breakpoints lists them")
        return found

    def _set(self, one: _Armed, armed: bool) -> None:
        if one.info.armed != armed:
            one.info = replace(one.info, armed=armed)
            # What was met before it was disarmed may be met again.
            _tracked(one)
            self._say(one.info, "pauses when" if armed else "does not pause when", "armed")

    @property
    def _note(self) -> str:
        return "" if self._acts_here else "acts on rank 0, which the others wait for"

    def _say(self, info: BreakpointInfo, does: str, what: str) -> None:
        detail = {"id": info.id, "what": what, "armed": info.armed, "kind": info.condition.kind}
        text = f"{does} {info.condition.text}".replace(" when at step", " at step")
        self._events.event(self._upcoming(), BREAKPOINT, text, json.dumps(detail))


def _tracked(one: _Armed) -> _Armed:
    """Reset the progress of a breakpoint."""
    condition = one.info.condition
    one.track = SeriesTrack(condition) if isinstance(condition, OnSeries) else None
    one.was_bad, one.severe = False, []
    return one


def _is_newly_severe(one: _Armed, alert: Alert) -> bool:
    """Return whether the alert is severe and no consequence of an earlier one; remember it."""
    if alert.severity != SEVERE:
        return False
    known = any(may_come_of(alert, other) for other in one.severe)
    # The oldest are forgotten: a long run must not compare with all of its alerts.
    one.severe = [*one.severe, alert][-MOST_SEVERE:]
    return not known


def _of_series(info: BreakpointInfo, condition: OnSeries, step: int, value: float) -> Hit:
    compared = condition.comparison
    what = f"{condition.series} {value:.3g} {compared}"
    if condition.before == "update":
        what += ", before the update"
    return Hit(
        id=info.id,
        condition=condition,
        step=step,
        what=what,
        module=condition.module,
        quantity=condition.quantity,
        value=value,
        threshold=compared.threshold,
    )


def _of_alert(info: BreakpointInfo, alert: Alert) -> Hit:
    quantity = alert.quantities[0] if alert.quantities else ""
    what = alert.said
    more = {"rule": alert.rule}
    return Hit(
        id=info.id,
        condition=info.condition,
        step=alert.step,
        what=what,
        module=alert.module,
        quantity=quantity,
        value=None,
        threshold=None,
        more=more,
    )


def _series(module: str, name: str) -> str:
    return name if module == "(root)" else f"{module} · {name}"
