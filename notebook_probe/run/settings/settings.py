"""All that can be set of a run while it trains, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Protocol

from torch.optim import Optimizer

from notebook_probe.errors import DuplicateNameError, SettingError, UnknownNameError, near
from notebook_probe.run.attach.requests import Set
from notebook_probe.run.settings.knob import Knob
from notebook_probe.run.settings.optimizer_option import RATE, optimizer_options
from notebook_probe.run.settings.setting import Change, KnobInfo, Setting, as_number

__all__ = ["SET", "Settings"]

SET = "set"
"""The kind of its events."""


class DetailedEvents(Protocol):
    """Who keeps what was set."""

    def event(self, step: int, kind: str, text: str, detail: str = "") -> None:
        """Note it: in words for people, as JSON for programs."""


class Settings:
    """Options of the optimizers that step the model, and the user's knobs.

    Parameters
    ----------
    optimizers : callable
        Those that are known now.
    events : DetailedEvents
    """

    def __init__(
        self, optimizers: Callable[[], Sequence[Optimizer]], events: DetailedEvents
    ) -> None:
        self._optimizers, self._events = optimizers, events
        self._knobs: dict[str, Knob] = {}  # replaced, never changed: other threads walk it

    def add(self, knob: Knob) -> None:
        """Have a knob, in place of an earlier one of its name.

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

    def infos(self) -> list[KnobInfo]:
        """Everything that can be set now."""
        return [setting.info() for setting in self._settings().values()]

    def check(self, request: Set) -> None:
        """Raise a ProbeError for what cannot be set; from any thread."""
        self._checked(request)

    def apply(self, request: Set, step: int) -> str:
        """Set it, between two steps; returns what was done, in words.

        Raises
        ------
        ProbeError
            Why it cannot be.
        """
        setting, value = self._checked(request)
        change = setting.set(value, request.group)
        if change is None:
            return f"{request.name} is {value:.6g} already"
        self._note(request, value, change, step + change.is_late)
        return f"{change.text}, from step {step + 1} on" if change.is_late else change.text

    def _note(self, request: Set, value: float, change: Change, step: int) -> None:
        detail = {"name": request.name, "group": request.group, "from": change.before, "to": value}
        self._events.event(step, SET, change.text, json.dumps(detail))

    def _checked(self, request: Set) -> tuple[Setting, float]:
        settings = self._settings()
        setting = settings.get(request.name) if isinstance(request.name, str) else None
        if setting is None:
            raise self._unknown(request.name, settings)
        value = as_number(request.name, request.value)
        setting.check(value, request.group)
        return setting, value

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
