"""The way back of a run: the loop that has said it can, and what it is asked for."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Protocol, TypeGuard, runtime_checkable

from notebook_probe.errors import ProbeError, ScheduleError, TrainingStopped
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack, SaveCheckpoint

__all__ = ["MUST_BE_FREE", "CanGoBack", "CanStartBack", "GoingBack", "WayBack"]

MUST_BE_FREE = "The loop must be paused or in the background to go back"


class CanGoBack(Protocol):
    """A training loop that keeps states to go back to.

    Loops are above runs, so that a run knows them by this only.
    """

    @property
    def restores(self) -> str:
        """State that is restored, as text."""
        ...

    def check_back(self, step: int) -> None:
        """Raise a ProbeError that says why the state after ``step`` updates cannot be had."""

    def evaluate_back(self, request: EvaluateAt) -> str:
        """Measure in an earlier state without changing anything; return what was done, as text."""
        ...

    def save_now(self) -> str:
        """Save the present state permanently; return what was done, as text."""
        ...


@runtime_checkable
class CanStartBack(CanGoBack, Protocol):
    """A training loop that can also go back after it has ended, and train on in the background."""

    @property
    def ended_at(self) -> int | None:
        """Number of updates to train up to after a rewind; None while the loop runs."""
        ...

    @property
    def going_to(self) -> int | None:
        """Step to which the loop goes back now; None if it does not."""
        ...

    def check_start(self, step: int) -> None:
        """Raise a ProbeError that says why the state after ``step`` updates cannot be had."""

    def start_back(self, request: GoBack) -> None:
        """Go back on a thread of the loop, and train on there up to `ended_at`."""


class GoingBack(TrainingStopped):
    """Exception that ends the steps of a loop before it goes back and continues."""

    def __init__(self, request: GoBack) -> None:
        super().__init__(f"back to step {request.step}")
        self.request = request


class WayBack:
    """Requests to a `CanGoBack`, between two steps on the training thread.

    Parameters
    ----------
    is_free : callable
        Returns True if the loop is paused, or trains without a cell that waits for it.
    leave : callable
        Raises this in the loop where it passes the gate.
    check : callable
        Raises a ProbeError for a request that a branch cannot measure.
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
        """Set the loop that goes back; it is referenced weakly, as it refers to the run."""
        # A cycle would leave both to the garbage collector, with hooks and files open.
        self._loop = weakref.ref(loop)

    @property
    def restores(self) -> str:
        """State that is restored, as text; "" if no loop can go back."""
        loop = self._loop()
        return "" if loop is None else loop.restores

    def leave_loop(self) -> None:
        """Offer no way back any more: a branch has taken the loop over."""
        self._loop = lambda: None

    @property
    def until(self) -> int | None:
        """Step up to which a loop that has ended would train after a rewind; None for others."""
        loop = self._startable()
        # A thread that is paused after its loop has ended still trains.
        return None if loop is None or self._is_free() else loop.ended_at

    @property
    def going_to(self) -> int | None:
        """Step to which the loop goes back now; None if it does not."""
        loop = self._startable()
        return None if loop is None else loop.going_to

    def starts_by(self, request: object) -> TypeGuard[GoBack]:
        """Return whether a request would make a loop that has ended train again."""
        return isinstance(request, GoBack) and self.until is not None

    def _start(self, request: GoBack) -> str:
        """Send a loop that has ended back, to train on in the background."""
        loop, until = self._startable(), self.until
        assert loop is not None
        assert until is not None  # or it would not start
        if request.step >= until:
            raise ScheduleError(f"step {request.step}: training ended there, nothing is left to do")
        loop.check_start(request.step)
        _check_numbers(request)
        self._check(request)
        loop.start_back(request)
        return f"{_words(request)}; training in the background, to step {until}"

    def _startable(self) -> CanStartBack | None:
        loop = self._loop()
        return loop if isinstance(loop, CanStartBack) else None

    def save(self, request: SaveCheckpoint, step: int) -> str:
        """Save the present state; return what was done, as text.

        Raises
        ------
        ProbeError
            Reason why it cannot be done.
        """
        loop = self._loop()
        if loop is None:
            raise ProbeError("this loop saves no checkpoints by request; a Loop does")
        return loop.save_now()

    def apply(self, request: GoBack | EvaluateAt, step: int) -> str:
        """Apply a request; return what is done, as text.

        Raises
        ------
        ProbeError
            Reason why it cannot be done.
        """
        loop = self._loop()
        if loop is None:
            raise ProbeError("this loop keeps no states that it could go back to")
        if self.starts_by(request):
            return self._start(request)
        if not self._is_free():
            raise ProbeError(MUST_BE_FREE)
        loop.check_back(request.step)
        if isinstance(request, EvaluateAt):
            return loop.evaluate_back(request)
        _check_numbers(request)
        self._check(request)
        self._leave(GoingBack(request))
        return _words(request)


def _check_numbers(request: GoBack) -> None:
    """Check numbers that were typed in the panel."""
    if request.until is not None and request.until <= request.step:
        raise ScheduleError(f"until step {request.until}: one after {request.step} is expected")
    if request.pause_at is not None and request.pause_at < request.step:
        raise ScheduleError(f"pause at step {request.pause_at}: from {request.step} on is expected")
    if request.rate is not None and not request.rate > 0:
        raise ScheduleError(f"learning rate {request.rate:g}: a positive number is expected")


def _words(request: GoBack) -> str:
    until = "" if request.until is None else f" until {request.until}"
    denser = f"; {request.preset}{until}" if request.preset else ""
    return f"rewound to {request.step}{denser}"
