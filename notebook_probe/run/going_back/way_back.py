"""The way back of a run: the loop that has said it can, and what it is asked for."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Protocol

from notebook_probe.errors import ProbeError, ScheduleError, TrainingStopped
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack

__all__ = ["MUST_BE_FREE", "CanGoBack", "SentBack", "WayBack"]

MUST_BE_FREE = "The loop must be held or in the background to go back"


class CanGoBack(Protocol):
    """A training loop that keeps states to go back to."""

    @property
    def restores(self) -> str:
        """What is as it was then, in words."""
        ...

    def check_back(self, step: int) -> None:
        """Raise a ProbeError that says why the state after ``step`` updates cannot be had."""

    def evaluate_back(self, request: EvaluateAt) -> str:
        """Measure in an earlier state, leaving all as it is; returns what was done, in words."""
        ...


class SentBack(TrainingStopped):
    """Ends the steps of a loop that is to go back; it goes on from there by itself."""

    def __init__(self, request: GoBack) -> None:
        super().__init__(f"back to step {request.step}")
        self.request = request


class WayBack:
    """What `CanGoBack` is asked for, between two steps on the thread that trains.

    Parameters
    ----------
    is_free : callable
        The loop is held, or trains where nobody waits for the end of a cell.
    leave : callable
        Has the gate raise this where the loop passes it.
    check : callable
        Raises a ProbeError for what a branch cannot measure.
    """

    def __init__(
        self,
        is_free: Callable[[], bool],
        leave: Callable[[TrainingStopped], None],
        check: Callable[[GoBack], object],
    ) -> None:
        self._is_free, self._leave, self._check = is_free, leave, check
        self._loop: Callable[[], CanGoBack | None] = lambda: None

    def by(self, loop: CanGoBack) -> None:
        """Have this loop go back from now on; it is held weakly, as it holds the run."""
        self._loop = weakref.ref(loop)

    @property
    def restores(self) -> str:
        """What is as it was, in words; "" where no loop can go back."""
        loop = self._loop()
        return "" if loop is None else loop.restores

    def apply(self, request: GoBack | EvaluateAt, step: int) -> str:
        """Have it done; returns what is done, in words.

        Raises
        ------
        ProbeError
            Why it cannot be done.
        """
        loop = self._loop()
        if loop is None:
            raise ProbeError("this loop keeps no states that it could go back to")
        if not self._is_free():
            raise ProbeError(MUST_BE_FREE)
        loop.check_back(request.step)
        if isinstance(request, EvaluateAt):
            return loop.evaluate_back(request)
        _check_numbers(request)
        self._check(request)
        self._leave(SentBack(request))
        return _words(request)


def _check_numbers(request: GoBack) -> None:
    """What a click may have typed."""
    if request.until is not None and request.until <= request.step:
        raise ScheduleError(f"until step {request.until}: one after {request.step} is expected")
    if request.hold_at is not None and request.hold_at < request.step:
        raise ScheduleError(f"hold at step {request.hold_at}: from {request.step} on is expected")
    if request.rate is not None and not request.rate > 0:
        raise ScheduleError(f"learning rate {request.rate:g}: a positive number is expected")


def _words(request: GoBack) -> str:
    until = "" if request.until is None else f" until {request.until}"
    denser = f"; {request.preset}{until}" if request.preset else ""
    return f"rewound to {request.step}{denser}"
