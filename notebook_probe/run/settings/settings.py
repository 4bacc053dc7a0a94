"""All that can be set of a run while it trains, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from torch.optim import Optimizer

from notebook_probe.errors import DuplicateNameError, SettingError, UnknownNameError, near
from notebook_probe.probes.step.sink import EventSink
from notebook_probe.run.attach.requests import Release, Scale, Set
from notebook_probe.run.settings.knob import Knob
from notebook_probe.run.settings.optimizer_option import RATE, optimizer_options
from notebook_probe.run.settings.scaled import scaled
from notebook_probe.run.settings.setting import Change, KnobInfo, Setting, as_number

__all__ = ["SET", "Settings"]

SET = "set"
"""The kind of its events."""


class Settings:
    """Options of the optimizers that step the model, and the user's knobs.

    Parameters
    ----------
    optimizers : callable
        Gives those that are known now.
    events : EventSink, optional
        Nobody by default.
    """

    def __init__(
        self,
        optimizers: Callable[[], Sequence[Optimizer]],
        events: EventSink | None = None,
    ) -> None:
        self._optimizers, self._events = optimizers, events
        self._knobs: dict[str, Knob] = {}  # replaced, never changed: other threads walk it

    def add(self, knob: Knob) -> None:
        """Add a knob, replacing an earlier one of the same name.

        Raises
        ------
        DuplicateNameError
            For the name of an option of the optimizers.
        """
        if knob.name in {RATE, *optimizer_options(self._optimizers())}:
            raise DuplicateNameError(
                f"knob({knob.name!r}): this is an option of the optimizer, which "
                f"run.set({knob.name!r}, ...) sets; give yours another name"
            )
        self._knobs = {**self._knobs, knob.name: knob}

    @property
    def knobs(self) -> Mapping[str, Knob]:
        """The user's own, by name."""
        return self._knobs

    def unnoted(self) -> Self:
        """Return a copy whose changes are no events."""
        others = type(self)(self._optimizers)
        others._knobs = self._knobs
        return others

    def infos(self) -> list[KnobInfo]:
        """Return everything that can be set now."""
        return [setting.info() for setting in self._settings().values()]

    def check(self, request: Set | Scale | Release) -> None:
        """Raise a ProbeError for what cannot be set; from any thread."""
        setting = self._named(request.name)
        for one in _sets(request, setting):
            setting.check(one.value, one.group, one.hold)

    def apply(self, request: Set | Scale | Release, step: int) -> str:
        """Apply a change, between two steps; return what was done, as text.

        Raises
        ------
        ProbeError
            The setting cannot be made; the message says why.
        """
        setting = self._named(request.name)
        if isinstance(request, Release):
            change = setting.release(request.group)
            return self._done(request, change, "as scheduled", step)
        sets = _sets(request, setting)
        # All are checked before one is set, so that a change is made as a whole or not at all.
        for one in sets:
            setting.check(one.value, one.group, one.hold)
        changes = [setting.set(one.value, one.group, one.hold) for one in sets]
        pairs = zip(sets, changes, strict=True)
        return "; ".join(self._done(one, change, f"{one.value:.6g}", step) for one, change in pairs)

    def _done(self, request: Set | Release, change: Change | None, already: str, step: int) -> str:
        """Note a change in the record; returns it in words."""
        if change is None:
            return f"{request.name} is {already} already"
        detail = {
            "name": request.name,
            "group": request.group,
            "from": change.before,
            "to": change.after,
            **_manner(request),
        }
        if self._events is not None:
            self._events.event(step + change.is_late, SET, change.text, json.dumps(detail))
        return f"{change.text}, from step {step + 1} on" if change.is_late else change.text

    def _named(self, name: str) -> Setting:
        settings = self._settings()
        setting = settings.get(name) if isinstance(name, str) else None
        if setting is None:
            raise self._unknown(name, settings)
        return setting

    def _settings(self) -> dict[str, Setting]:
        return {**optimizer_options(self._optimizers()), **self._knobs}

    def _unknown(self, name: str, settings: dict[str, Setting]) -> Exception:
        if not self._optimizers():
            return SettingError(
                f"set({name!r}): no optimizer of this model has stepped yet, and none was given to "
                f"nbp.watch(model, optimizer); {near(name, settings)}"
            )
        return UnknownNameError(
            f"set({name!r}): nothing is set by this name; {near(name, settings)}"
        )


def _manner(request: Set | Release) -> dict[str, bool]:
    """Return how it was set, if not in the usual way: for repeating it."""
    if isinstance(request, Release):
        return {"release": True}
    return {"hold": True} if request.hold else {}


def _sets(request: Set | Scale | Release, setting: Setting) -> list[Set]:
    """Return the values to set: for a factor, the scaled value of each group."""
    if isinstance(request, Release):
        return []
    if isinstance(request, Scale):
        return scaled(request, setting.info())
    value = as_number(request.name, request.value)
    return [Set(request.name, value, request.group, request.hold)]
