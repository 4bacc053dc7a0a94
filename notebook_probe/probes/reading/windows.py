"""Quantities of several steps: one sample per step, a value when the schedule says so."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from contextlib import suppress
from functools import reduce
from typing import Any, Protocol

from torch import Tensor

from notebook_probe.probes.reading.results import StateSource
from notebook_probe.probes.reading.window_state import are_alike
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.quantities.define.window import Window

__all__ = ["SummaryWindow", "TensorWindow", "WindowReading"]


class WindowReading(Protocol):
    """Protocol of the update of one probe's window when a step has been closed."""

    probe: Probe
    needs_numbers: bool
    """True if its samples must be on the host; else it is updated as the step closes."""

    def end(self, frame: StepFrame) -> None:
        """Add the step's sample, and in a due step make a value of all and start again."""

    def look(self, frame: StepFrame) -> None:
        """Make the value that a due step would have if it ended now; nothing else changes."""

    def spoil(self) -> None:
        """Mark the window as having included values of a step that was dropped."""

    def after(self, frame: StepFrame) -> dict[object, Window]:
        """Return the windows as they would be if the step ended now; copies where they change."""


class TensorWindow:
    """Windows that were given tensors while the step was open."""

    needs_numbers = False

    def __init__(self, probe: Probe, index: int, is_due: bool) -> None:
        self.probe, self._index, self._is_due = probe, index, is_due

    def end(self, frame: StepFrame) -> None:
        if self._is_due and not self.probe.disabled:
            _take(self.probe, self._index, frame)

    def look(self, frame: StepFrame) -> None:
        if self._is_due and not self.probe.is_spoiled:
            with suppress(Exception):  # it is counted when the step ends
                _compute(self.probe, self._index, frame, [*self.probe.windows.values()])

    def spoil(self) -> None:
        """Skip the next value: a window cannot remove what it has included."""
        self.probe.is_spoiled = bool(self.probe.windows)

    def after(self, frame: StepFrame) -> dict[object, Window]:
        windows = self.probe.windows
        return _begun_anew(windows) if self._is_due else windows


class SummaryWindow:
    """A window that is given a step's summaries, pooled, once."""

    needs_numbers = True

    def __init__(
        self, probe: Probe, sources: tuple[StateSource, ...], index: int, is_due: bool
    ) -> None:
        self.probe, self._sources = probe, sources
        self._index, self._is_due = index, is_due

    def end(self, frame: StepFrame) -> None:
        probe = self.probe
        if probe.disabled:
            return
        try:
            self._update(probe.window_of(None), frame)
            probe.went_well(frame.step)
        except Exception as error:  # a user's quantity must never reach training
            frame.blame(probe, error)
        if self._is_due:
            _take(probe, self._index, frame)

    def look(self, frame: StepFrame) -> None:
        if self._is_due:
            with suppress(Exception):  # it is counted when the step ends
                window = copy.deepcopy(self.probe.window_of(None))
                self._update(window, frame)
                _compute(self.probe, self._index, frame, [window])

    def spoil(self) -> None:
        """Do nothing: it includes closed steps only."""

    def after(self, frame: StepFrame) -> dict[object, Window]:
        window = copy.deepcopy(self.probe.window_of(None))
        self._update(window, frame)
        if self._is_due:
            window.reset()
        return {None: window}

    def _update(self, window: Window, frame: StepFrame) -> None:
        states = []
        for source in self._sources:  # at every step: a generator would cost more than most windows
            if (state := source.state(frame)) is None:
                return
            states.append(state)
        window.update(*states)


def _compute(probe: Probe, index: int, frame: StepFrame, windows: Iterable[Window]) -> None:
    values = []
    for window in _whole(probe.quantity, windows):
        if (returned := window.compute()) is not None:
            value = probe.quantity.value_of(returned)
            values.append(value)
            frame.on_device |= isinstance(value, Tensor)
    frame.states[index] = {0: values} if values else None


def _whole(quantity: Quantity, windows: Iterable[Any]) -> list[Window]:
    """Merge the windows of all parameters, if a quantity is of all of them together."""
    several = [*windows]
    if not quantity.is_of_all or not several:
        return several
    return [reduce(lambda one, other: one.merge(other), several)]


def _take(probe: Probe, index: int, frame: StepFrame) -> None:
    """Make the value, and start again whether it could be made or not.

    Where a step was not taken in as a whole, or more than steps was, there is none.
    """
    try:
        if probe.error_step != frame.step and not probe.is_spoiled:
            _compute(probe, index, frame, probe.windows.values())
    except Exception as error:  # a user's quantity must never reach training
        frame.blame(probe, error)
        probe.value_failed()
    try:
        for window in probe.windows.values():
            window.reset()
    except Exception as error:  # as above
        frame.blame(probe, error)
    if probe.is_spoiled:
        probe.is_spoiled = probe.begins_late and _remembers(probe)


def _begun_anew(windows: dict[object, Window]) -> dict[object, Window]:
    """Return copies of windows, reset as after a due step."""
    copies = {slot: copy.deepcopy(window) for slot, window in windows.items()}
    for window in copies.values():
        window.reset()
    return copies


def _remembers(probe: Probe) -> bool:
    """Return whether a window remembers something over a reset."""
    new: Window = probe.quantity()
    new.reset()
    return not all(are_alike(window, new) for window in probe.windows.values())
