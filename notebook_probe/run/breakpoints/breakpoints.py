"""The breakpoints of a run: what is armed, and what was met since the training passed last.

Rows and alerts may come on any thread, while the training thread asks; a lock keeps them in order.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from notebook_probe.alerts import Alert
from notebook_probe.alerts.causes import may_come_of
from notebook_probe.errors import BreakpointError, UnknownNameError
from notebook_probe.probes.step.measured import MeasuredStep
from notebook_probe.run.breakpoints.breakpoint import Breakpoint
from notebook_probe.run.breakpoints.conditions import (
    SEVERE,
    AtStep,
    Before,
    Condition,
    OnAlert,
    OnError,
    OnNan,
    OnSeries,
)
from notebook_probe.run.breakpoints.hit import Hit
from notebook_probe.run.breakpoints.requests import Break, BreakpointInfo, EditBreak, Unbreak
from notebook_probe.run.breakpoints.series_track import SeriesTrack
from notebook_probe.run.breakpoints.step_numbers import StepNumbers
from notebook_probe.run.failure import Failure

__all__ = ["BREAKPOINT", "PAUSE", "Breakpoints"]

PAUSE, BREAKPOINT = "pause", "breakpoint"
"""Kinds of events: training was held; what it is to be held by was changed."""

MOST_SEVERE = 64
"""Alerts that are remembered, so that what comes of them is known as such."""


class DetailedEvents(Protocol):
    """Who keeps what happened."""

    def event(self, step: int, kind: str, text: str, detail: str = "") -> None: ...


@dataclass(slots=True)
class _Armed:
    """One of them, with what it has seen."""

    info: BreakpointInfo
    track: SeriesTrack | None = None
    was_bad: bool = False
    """Of `OnNan`: the row before had something that was not finite."""
    severe: list[Alert] = field(default_factory=list)
    """Of `OnAlert`: the severe ones that it was told of."""


@dataclass(slots=True)
class _Held:
    """What the training is held by now."""

    text: str = ""
    hits: Sequence[Hit] = ()
    ids: frozenset[int] = field(default_factory=frozenset)


class Breakpoints:
    """Those of one run.

    Parameters
    ----------
    events : DetailedEvents
    upcoming : callable
        The step whose update is the next to happen.
    acts_here : bool
        Of a run of several processes the first one holds; the others wait for it by themselves.
    """

    def __init__(
        self, events: DetailedEvents, upcoming: Callable[[], int], *, acts_here: bool = True
    ) -> None:
        self._events, self._upcoming, self._acts_here = events, upcoming, acts_here
        self._lock = threading.RLock()
        self._armed: tuple[_Armed, ...] = ()
        self._numbers = StepNumbers()
        self._hits: list[Hit] = []
        self._held = _Held()
        self._last_id = 0

    # ---------------------------------------------------------------- the list

    def add(self, condition: Condition) -> Breakpoint:
        """Hold the training by this, too; the same once more is the one that is there."""
        with self._lock:
            same = next((one for one in self._armed if one.info.condition == condition), None)
            if same is not None:
                self._set(same, armed=True)
                return Breakpoint(same.info.id, condition, self)
            self._last_id += 1
            self._check(condition)
            new = BreakpointInfo(
                self._last_id, condition, True, holds=False, last_step=-1, n_met=0, note=self._note
            )
            self._armed = (*self._armed, _tracked(_Armed(new)))
            self._say(new, "pauses when", "added")
        return Breakpoint(new.id, condition, self)

    def edit(self, id: int, armed: bool | None = None, number: float | None = None) -> str:
        """Arm one, or give it another number; what was done, in words.

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
                _tracked(one)
                self._say(one.info, "pauses when", "changed")
            if armed is not None:
                self._set(one, armed)
            return one.info.condition.text

    def remove(self, id: int) -> str:
        """Take one away; what was done, in words."""
        with self._lock:
            gone = self._one(id)
            self._armed = tuple(one for one in self._armed if one is not gone)
            self._say(gone.info, "no longer pauses when", "removed")
            return f"removed: {gone.info.condition.text}"

    def apply(self, request: Break | EditBreak | Unbreak, step: int) -> str:
        """Do what a request says; what was done, in words."""
        if isinstance(request, Break):
            return f"pauses when: {self.add(request.condition).condition.text}"
        if isinstance(request, EditBreak):
            return self.edit(request.id, request.armed, request.number)
        return self.remove(request.id)

    def infos(self) -> list[BreakpointInfo]:
        """All of them now, in the order in which they were added."""
        held = self._held.ids
        return [replace(one.info, holds=one.info.id in held) for one in self._armed]

    def info(self, id: int) -> BreakpointInfo | None:
        """One of them; None when it was removed."""
        return next((info for info in self.infos() if info.id == id), None)

    def handles(self) -> list[Breakpoint]:
        """All of them, to be changed."""
        return [Breakpoint(one.info.id, one.info.condition, self) for one in self._armed]

    # ---------------------------------------------------------------- what happens

    @property
    def is_idle(self) -> bool:
        """There is none, and nothing was met: a step costs no more than asking this."""
        return not (self._armed or self._hits)

    def waits_for(self, *kinds: type[Condition]) -> bool:
        """Whether one of these kinds is armed, so that it must be seen in time."""
        return any(isinstance(one.info.condition, kinds) for one in self._acting())

    def waits_before(self, update: Before) -> bool:
        """Whether something is armed that holds there."""
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

        What a severe one has led to is no second reason to hold for "severe"; a rule that is named
        holds whatever it came of.
        """
        with self._lock:
            for one in self._acting():
                condition = one.info.condition
                if isinstance(condition, OnAlert):
                    severe = SEVERE in condition.rules and _is_newly_severe(one, alert)
                    if severe or alert.rule in condition.rules:
                        self._hits.append(_of_alert(one.info, alert))

    def taken(self) -> list[Hit]:
        """What was met since it was asked last."""
        with self._lock:
            found, self._hits = self._hits, []
            return found

    def passing(self, step: int) -> Sequence[Hit]:
        """As `taken`, when training is about to begin ``step``."""
        with self._lock:
            found = self.taken()
            for one in self._acting():
                condition = one.info.condition
                if isinstance(condition, AtStep) and condition.step == step:
                    found.append(Hit(one.info.id, condition, step, "", threshold=float(step)))
            return found

    def raised(self, step: int, error: BaseException) -> Sequence[Hit]:
        """What is met by an exception of the loop."""
        failure, more = Failure.of(error), {"error": type(error).__name__}
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

    def hold(self, hits: Sequence[Hit], text: str) -> None:
        """Training is held by these from now on; an event tells of the first."""
        with self._lock:
            self._held = _Held(text, tuple(hits), frozenset(hit.id for hit in hits))
            for hit in hits:
                one = next((one for one in self._armed if one.info.id == hit.id), None)
                if one is not None:
                    one.info = replace(one.info, last_step=hit.step, n_met=one.info.n_met + 1)
        self._events.event(hits[0].step, PAUSE, text, hits[0].detail)

    def pass_by(self, hits: Sequence[Hit], text: str) -> None:
        """Training goes on past these, as nobody could end a pause."""
        why = f"not {text}: nobody could let it go on"
        self._events.event(hits[0].step, PAUSE, why, hits[0].detail)

    def let_go(self) -> None:
        """Training goes on."""
        self._held = _Held()

    @property
    def held_text(self) -> str:
        """Why training is held now; empty while it is not."""
        return self._held.text

    @property
    def traceback(self) -> str:
        """Of the exception that training is held by now; empty without one."""
        return self._held.hits[0].traceback if self._held.hits else ""

    # ---------------------------------------------------------------- inside

    def _acting(self) -> list[_Armed]:
        return [one for one in self._armed if one.info.armed] if self._acts_here else []

    def _met(self, one: _Armed, step: MeasuredStep) -> Iterator[Hit]:
        condition = one.info.condition
        if isinstance(condition, OnSeries):
            value = self._numbers.of(step, condition.module, condition.quantity)
            if value is not None and one.track is not None and one.track.see(step.step, value):
                yield _of_series(one.info, condition, step.step, value)
        elif isinstance(condition, OnNan):
            bad = next(self._numbers.not_finite(step), None)
            is_new, one.was_bad = bad is not None and not one.was_bad, bad is not None
            if bad is not None and is_new:
                what = f"{_series(bad.module, bad.name)} is {bad.value:.3g}"
                yield Hit(one.info.id, condition, step.step, what, bad.module, bad.name, bad.value)

    def _check(self, condition: Condition) -> None:
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
    """With nothing seen yet."""
    condition = one.info.condition
    one.track = SeriesTrack(condition) if isinstance(condition, OnSeries) else None
    one.was_bad, one.severe = False, []
    return one


def _is_newly_severe(one: _Armed, alert: Alert) -> bool:
    """Whether it is severe and comes of no other that was; it is remembered."""
    if alert.severity != SEVERE:
        return False
    known = any(may_come_of(alert, other) for other in one.severe)
    one.severe = [*one.severe, alert][-MOST_SEVERE:]
    return not known


def _of_series(info: BreakpointInfo, condition: OnSeries, step: int, value: float) -> Hit:
    compared = condition.comparison
    what = f"{condition.series} {value:.3g} {compared}"
    if condition.before == "update":
        what += ", before the update"
    return Hit(
        info.id,
        condition,
        step,
        what,
        condition.module,
        condition.quantity,
        value,
        compared.threshold,
    )


def _of_alert(info: BreakpointInfo, alert: Alert) -> Hit:
    quantity = alert.quantities[0] if alert.quantities else ""
    what = alert.said
    more = {"rule": alert.rule}
    return Hit(info.id, info.condition, alert.step, what, alert.module, quantity, None, None, more)


def _series(module: str, name: str) -> str:
    return name if module == "(root)" else f"{module} · {name}"
