"""Quantities of several steps: one sample per step, a value when the schedule says so."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from contextlib import suppress
from functools import reduce
from typing import Any, Protocol

from torch import Tensor

from notebook_probe.probes.reading.results import StateSource
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.quantities.define.window import Window

__all__ = ["SummaryWindow", "TensorWindow", "WindowReading"]


class WindowReading(Protocol):
    """What is done with one probe's window when a step has been closed."""

    needs_numbers: bool
    """Whether its samples must be on the host; else it is done as the step closes."""

    def end(self, frame: StepFrame) -> None:
        """Take in the step's sample, and in a due step make a value of all and begin anew."""

    def look(self, frame: StepFrame) -> None:
        """Make the value that a due step would have if it ended now; nothing else changes."""


class TensorWindow:
    """Windows that were given tensors while the step was open."""

    needs_numbers = False

    def __init__(self, probe: Probe, index: int, is_due: bool) -> None:
        self._probe, self._index, self._is_due = probe, index, is_due

    def end(self, frame: StepFrame) -> None:
        if self._is_due and not self._probe.disabled:
            _take(self._probe, self._index, frame)

    def look(self, frame: StepFrame) -> None:
        if self._is_due:
            with suppress(Exception):  # it is counted when the step ends
                _compute(self._probe, self._index, frame, [*self._probe.windows.values()])


class SummaryWindow:
    """A window that is given a step's summaries, pooled, once."""

    needs_numbers = True

    def __init__(
        self, probe: Probe, sources: tuple[StateSource, ...], index: int, is_due: bool
    ) -> None:
        self._probe, self._sources = probe, sources
        self._index, self._is_due = index, is_due

    def end(self, frame: StepFrame) -> None:
        probe = self._probe
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
                window = copy.deepcopy(self._probe.window_of(None))
                self._update(window, frame)
                _compute(self._probe, self._index, frame, [window])

    def _update(self, window: Window, frame: StepFrame) -> None:
        states = [source.state(frame) for source in self._sources]
        if all(state is not None for state in states):
            window.update(*states)


def _compute(probe: Probe, index: int, frame: StepFrame, windows: Iterable[Window]) -> None:
    returned = [window.compute() for window in _whole(probe.quantity, windows)]
    values = [probe.quantity.value_of(one) for one in returned if one is not None]
    frame.states[index] = {0: values} if values else None
    frame.on_device |= any(isinstance(value, Tensor) for value in values)


def _whole(quantity: Quantity, windows: Iterable[Any]) -> list[Window]:
    """The window of all parameters, where a quantity is of all of them together."""
    several = [*windows]
    if not quantity.is_of_all or not several:
        return several
    return [reduce(lambda one, other: one.merge(other), several)]


def _take(probe: Probe, index: int, frame: StepFrame) -> None:
    """Make the value, and begin anew whether it could be made or not.

    Of a step that was not taken in as a whole there is none.
    """
    try:
        if probe.error_step != frame.step:
            _compute(probe, index, frame, probe.windows.values())
    except Exception as error:  # a user's quantity must never reach training
        frame.blame(probe, error)
        probe.value_failed()
    try:
        for window in probe.windows.values():
            window.reset()
    except Exception as error:  # as above
        frame.blame(probe, error)
