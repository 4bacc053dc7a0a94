"""Schedule by wall-clock time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules.numbers import number_text, real, stream_name
from notebook_probe.schedules.operators import Operators
from notebook_probe.schedules.span import Span

__all__ = ["Seconds"]


@dataclass(frozen=True, slots=True)
class Seconds(Operators):
    """Schedule due when a number of seconds have passed since the work was last done.

    The first step starts the clock, and the end of the work restarts it: a long pause is one due
    step, and 0 is every step but the first. It is the one schedule that is no function of the step.

    Parameters
    ----------
    period : float
        Seconds, from 0.
    clock : callable
        Seconds as ``time.monotonic()`` tells them.
    """

    period: float
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        where = f"Seconds({self.period!r})"
        object.__setattr__(self, "period", real(self.period, where))
        if self.period < 0:
            raise ScheduleError(f"{where}: a time from 0 is expected")
        if not callable(self.clock):
            raise ScheduleError(f"{where}: clock={self.clock!r} cannot be called")

    def __call__(self, step: int) -> bool:
        raise ScheduleError(f"{self} has no clock that runs: arm it, bound(schedule, Span())")

    def bound(self, span: Span) -> _Clock:
        """Return a schedule with a clock that starts at the first step."""
        return _Clock(self)

    @property
    def stream(self) -> str:
        return stream_name(str(self))

    def __str__(self) -> str:
        return f"seconds({number_text(self.period)})"


class _Clock:
    """A running clock; it belongs to whatever has armed it."""

    def __init__(self, schedule: Seconds) -> None:
        self._schedule = schedule
        self._since: float | None = None
        self._last: tuple[int, bool] | None = None

    def __call__(self, step: int) -> bool:
        if self._last is None or self._last[0] != step:  # decided once per step
            self._last = step, self._has_passed()
        return self._last[1]

    def _has_passed(self) -> bool:
        now = self._schedule.clock()
        if self._since is None:
            self._since = now
            return False
        return now - self._since >= self._schedule.period

    def restart(self) -> None:
        self._since = self._schedule.clock()

    def bound(self, span: Span) -> _Clock:
        """Return itself: further facts about the run do not stop the clock."""
        return self

    @property
    def stream(self) -> str:
        return self._schedule.stream

    def __str__(self) -> str:
        return str(self._schedule)
