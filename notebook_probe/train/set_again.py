"""Settings changed by hand, repeated when their steps are trained again."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from notebook_probe.errors import ProbeError, ReplayWarning
from notebook_probe.record.format.source import Event
from notebook_probe.run.attach.requests import Release, Set
from notebook_probe.run.settings.settings import SET, Settings

__all__ = ["SetAgain"]

GOES_BACK = frozenset({"branch", "truncate", "resume"})
"""Kinds of events from whose step on the training is another one."""


class SetAgain:
    """Repeat at each boundary the settings that were made there before.

    Parameters
    ----------
    settings : Settings
    events : iterable of Event
        Events of the record, in the order in which they occurred.
    """

    def __init__(self, settings: Settings, events: Iterable[Event]) -> None:
        self._settings = settings
        self._sets = _sets(events)
        self._done = -1
        self._failed = ""

    def knobs_at(self, step: int) -> None:
        """Set the user's knobs to their values at a state, which no checkpoint has."""
        for name in self._settings.knobs:
            value = self._value_at(name, step)
            if value is not None:
                self._apply(step, Set(name, value))

    def __call__(self, step: int) -> None:
        """Repeat the settings before this step; once, as the end of an epoch comes here twice."""
        if step > self._done:
            self._done = step
            for at, detail in self._sets:
                if at == step:
                    self._apply(step, _request(detail))

    def warn(self) -> None:
        """Warn about settings that could not be repeated."""
        if self._failed:
            warnings.warn(
                f"what was set by hand could not be set again: {self._failed}; from there on the "
                f"training is another one",
                ReplayWarning,
                stacklevel=4,
            )

    def _value_at(self, name: str, step: int) -> Any:
        """Return the value set last before, or before the first change; None if unknown."""
        own = [(at, detail) for at, detail in self._sets if detail["name"] == name]
        earlier = [detail["to"] for at, detail in own if at < step]
        later = [detail["from"] for at, detail in own if at >= step]
        return earlier[-1] if earlier else next(iter(later), None)

    def _apply(self, step: int, request: Set | Release) -> None:
        try:
            self._settings.apply(request, step)
        except Exception as error:  # the user's own function, too
            said = str(error) if isinstance(error, ProbeError) else repr(error)
            self._failed = self._failed or f"{_words(request)} of step {step}: {said}"


def _request(detail: Mapping[str, Any]) -> Set | Release:
    """Return the request in an event."""
    name, group = detail["name"], detail["group"]
    if detail.get("release"):
        return Release(name, group)
    return Set(name, detail["to"], group, detail.get("hold", False))


def _words(request: Set | Release) -> str:
    return f"{request.name}={request.value!r}" if isinstance(request, Set) else request.name


def _sets(events: Iterable[Event]) -> list[tuple[int, dict[str, Any]]]:
    """Return the settings and their steps, on the branch that was trained last."""
    sets: list[tuple[int, dict[str, Any]]] = []
    for event in events:
        if event.kind in GOES_BACK:
            sets = [(step, detail) for step, detail in sets if step < event.step]
        elif event.kind == SET and event.detail:
            sets.append((event.step, json.loads(event.detail)))
    return sets
