"""GoMLX's names for calling something at due steps of a loop."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from notebook_probe.checks import is_whole
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
        return self.at(Every(int(n)), call, name, priority)

    def n_times_during_loop(
        self, n: int, call: OnStep, name: str = "", priority: float = 0
    ) -> Hook:
        """Call ``loop.at(Times(n), call)``; GoMLX's name for it."""
        return self.at(Times(n), call, name, priority)

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
        periodic = Periodic(Geometric(start, factor), call, call_on_end, first=0)
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
        return self.at(Seconds(period, clock), call, name, priority, call_on_end)
