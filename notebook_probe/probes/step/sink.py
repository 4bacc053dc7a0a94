"""Roles around an observer: the receiver of its steps, the gate, and the event log."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from notebook_probe.probes.step.frame import StepFrame

__all__ = ["EventSink", "OpenGate", "StepGate"]


class StepGate(Protocol):
    """Protocol of the gate between two steps."""

    awaits_update: bool
    """`before_update` is to be called in the open step."""
    waits: bool
    """True if something waits at the gate, so that `pass_to` has work to do."""

    @property
    def reached(self) -> Reached:
        """The step for which it was passed last, and who waits for one."""

    def wake(self) -> None:
        """Make the next boundary look for work; from any thread."""

    def reach(self, step: int) -> None:
        """Pass on the way to ``step`` while nothing waits."""

    def pass_to(self, step: int) -> float:
        """Wait on the way to ``step``, and return the seconds.

        May raise a BaseException, which ends the training loop.
        """
        ...

    def before_update(self, frame: StepFrame) -> float:
        """Wait before the gradients of an open step are applied, and return the seconds."""
        ...


class Reached(Protocol):
    """Protocol of the step that a training has reached; `ReachedStep` of a run is one."""

    step: int
    first: float
    """The first step that a thread waits for."""

    def wake(self) -> None:
        """Wake the waiting threads."""


@dataclass(slots=True)
class _Reached:
    """Step that no thread waits for."""

    step: int = 0
    first: float = math.inf

    def wake(self) -> None:
        pass


class OpenGate:
    """Gate without waiting: that of an observer whose hooks are not on yet."""

    awaits_update = False
    waits = True

    def __init__(self) -> None:
        self.reached: Reached = _Reached()

    def wake(self) -> None:
        pass

    def reach(self, step: int) -> None:
        pass

    def pass_to(self, step: int) -> float:
        return 0.0

    def before_update(self, frame: StepFrame) -> float:
        return 0.0


class EventSink(Protocol):
    """Protocol of the log of events at a step."""

    def event(self, step: int, kind: str, text: str, detail: str = "") -> None:
        """Note it, as text; ``detail`` is JSON for programs."""
