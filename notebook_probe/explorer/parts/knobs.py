"""The learning rate and everything else that `Run.set` sets, to be turned in the panel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypedDict

from notebook_probe.explorer.messages.throttled import Throttled
from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.explorer.parts.rate_hint import RateHint, rate_hint
from notebook_probe.json_numbers import json_number
from notebook_probe.record.format.source import Event
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.requests import Release, Request, Scale, Set
from notebook_probe.run.controls import Controls
from notebook_probe.run.settings.setting import KnobInfo

__all__ = ["KnobRow", "Knobs", "ReleaseClick", "ScaleClick", "SetClick"]

RATE = "lr"


class GroupRow(TypedDict):
    """Row of one parameter group."""

    text: str
    scheduled: float | None
    held: bool


class KnobRow(TypedDict):
    """Row of one setting."""

    name: str
    value: float | None
    """None if it cannot be read, or if the groups of the optimizers differ."""
    low: float | None
    high: float | None
    log: bool
    groups: list[float | None]
    """Value of an optimizer option in each group; None for groups without it."""
    of: str
    details: list[GroupRow]


class LastChange(TypedDict):
    """Last change of the learning rate."""

    step: int
    text: str


class SetClick(TypedDict):
    """Set a value, in all groups or in one."""

    v: int
    type: Literal["set"]
    id: str
    name: str
    value: float
    group: int | None
    hold: bool


class ScaleClick(TypedDict):
    """Multiply a value in every group."""

    v: int
    type: Literal["scale"]
    id: str
    name: str
    factor: float
    hold: bool


class ReleaseClick(TypedDict):
    """Leave it to its schedule."""

    v: int
    type: Literal["release"]
    id: str
    name: str


def _set(click: SetClick) -> Request:
    return Set(click["name"], click["value"], click["group"], click["hold"])


def _scale(click: ScaleClick) -> Request:
    return Scale(click["name"], click["factor"], click["hold"])


def _release(click: ReleaseClick) -> Request:
    return Release(click["name"])


class Knobs(Part):
    """Settings that can be changed during training; an opened record has none."""

    name: ClassVar = "knobs"
    clicks: ClassVar = {
        "set": Click(SetClick, _set),
        "scale": Click(ScaleClick, _scale),
        "release": Click(ReleaseClick, _release),
    }

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._last: LastChange | None = None
        self._n_events = 0
        self._hint = Throttled(self._hint_now)

    def state(self, seen: Seen) -> Mapping[str, Any] | None:
        if self._controls is None or seen.head.state == "finished":
            return {"knobs": [], "hint": None, "last": None}
        self._look_for_changes()
        return {
            "knobs": [_row(knob) for knob in self._controls.knobs()],
            "hint": self._hint.value(),
            "last": self._last,
        }

    def _look_for_changes(self) -> None:
        events = self._source.events
        # Only events since the last look: a record may have many thousands.
        for event in events[self._n_events :]:
            if _is_of_rate(event):
                self._last = {"step": event.step, "text": event.text}
                self._hint.expire()
        self._n_events = len(events)

    def _hint_now(self) -> RateHint | None:
        """Return the hint for the steps since the last change of the rate."""
        return rate_hint(self._source, -1 if self._last is None else self._last["step"])


def _is_of_rate(event: Event) -> bool:
    if event.kind != "set" or not event.detail:
        return False
    return bool(json.loads(event.detail).get("name") == RATE)


def _row(knob: KnobInfo) -> KnobRow:
    return {
        "name": knob.name,
        "value": json_number(knob.value),
        "low": knob.low,
        "high": knob.high,
        "log": knob.log,
        "groups": [json_number(value) for value in knob.groups],
        "of": knob.of,
        "details": [
            {"text": one.text, "scheduled": one.scheduled, "held": one.is_held}
            for one in knob.details
        ],
    }
