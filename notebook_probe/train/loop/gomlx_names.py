"""GoMLX's names for calling something at due steps of a loop."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from notebook_probe.checks import is_whole
from notebook_probe.errors import ScheduleError
from notebook_probe.schedules import Every, Geometric, ScheduleLike, Seconds, Times
from notebook_probe.train.loop.hooks import Hook, LoopHooks, OnStep, Periodic

__all__ = ["GomlxNames"]


class GomlxNames(ABC):
    """Methods of a loop under GoMLX's names; each is `Loop.at` with a schedule."""

    _hooks: LoopHooks

    @abstractmethod
    def at(
        self,
        schedule: ScheduleLike,
        call: OnStep,
        name: str = "",
        priority: float = 0,
        call_on_end: bool = False,
    ) -> Hook: ...

    def every_n_steps(self, n: int, call: OnStep, name: str = "", priority: float = 0) -> Hook:
        """Call ``loop.at(n, call)``; GoMLX's name for it."""
        if not is_whole(n):
            raise TypeError(
                f"every_n_steps(n, call) with n={n!r}: a whole number is expected first; "
                f"loop.at(schedule, call) takes any schedule"
            )
        with _named(f"every_n_steps(n={n})"):
            schedule = Every(int(n))
        return self.at(schedule, call, name, priority)

    def n_times_during_loop(
        self, n: int, call: OnStep, name: str = "", priority: float = 0
    ) -> Hook:
        """Call ``loop.at(Times(n), call)``; GoMLX's name for it."""
        with _named(f"n_times_during_loop(n={n!r})"):
            schedule = Times(n)
        return self.at(schedule, call, name, priority)

    def exponential_callback(
        self,
        start: int,
        factor: float,
        call: OnStep,
        name: str = "",
        priority: float = 0,
        call_on_end: bool = False,
    ) -> Hook:
        """Call it at growing intervals of ``loop_step``, not of updates; GoMLX's name for it."""
        with _named(f"exponential_callback(start={start!r}, factor={factor!r})"):
            schedule = Geometric(start, factor)
        periodic = Periodic(schedule, call, call_on_end, first=0)
        return self._hooks.at(periodic, name, priority)

    def periodic_callback(
        self,
        period: float,
        call: OnStep,
        name: str = "",
        priority: float = 0,
        call_on_end: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> Hook:
        """Call ``loop.at(Seconds(period), call)``; GoMLX's name for it."""
        with _named(f"periodic_callback(period={period!r})"):
            schedule = Seconds(period, clock)
        return self.at(schedule, call, name, priority, call_on_end)


@contextmanager
def _named(call: str) -> Iterator[None]:
    """Name the user's call in the error of a schedule, which names its own class."""
    try:
        yield
    except ScheduleError as error:
        raise ScheduleError(f"{call}: {str(error).rpartition(': ')[2]}") from None
