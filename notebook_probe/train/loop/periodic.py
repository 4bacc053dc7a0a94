"""Calling something at the due steps of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from notebook_probe.schedules import UNKNOWN, Schedule, Span, bound, is_owed, restart
from notebook_probe.train.metrics.averages import Value

__all__ = ["Periodic"]


class Stepping(Protocol):
    """Interface of a loop for a callback."""

    loop_step: int
    start_step: int
    end_step: int


class Periodic:
    """Callback that runs ``call(loop, metrics)`` at the due counts of updates of a loop.

    Parameters
    ----------
    schedule : Schedule
        Armed again as each run of the loop begins, and given the end as more is known of it.
    call : callable
    call_on_end : bool
        Call it once more when the loop has ended, even after a call at the last step.
    first : int
        Count of the first step: 1 counts the updates completed, 0 numbers steps as `loop_step`.
    """

    def __init__(
        self,
        schedule: Schedule,
        call: Callable[[Any, Mapping[str, Value]], Any],
        call_on_end: bool = False,
        first: int = 1,
    ) -> None:
        if not callable(call):
            raise TypeError(f"{call!r}: a function (loop, metrics) is expected")
        self._schedule, self._call, self._on_end = schedule, call, call_on_end
        self._first, self._span = first, Span()
        self._armed = bound(schedule, self._span)

    @property
    def name(self) -> str:
        """Name of the function, for errors; empty without one."""
        return getattr(self._call, "__name__", "")

    def on_start(self, loop: Stepping, data: Any) -> None:
        """Start a run of the loop."""
        start = loop.start_step + self._first
        self._span = Span(start, seen_from=start).until(self._end_of(loop))
        self._armed = bound(self._schedule, self._span)

    def on_step(self, loop: Stepping, metrics: Mapping[str, Value]) -> None:
        """Handle a complete step."""
        count, end = loop.loop_step + self._first, self._end_of(loop)
        if end != self._span.end:
            self._span = self._span.until(end, since=count)
            self._armed = bound(self._armed, self._span)
        if self._armed(count):
            self._call(loop, metrics)
            restart(self._armed)

    def on_end(self, loop: Stepping, metrics: Mapping[str, Value] | None) -> None:
        """Finish: for a length that was unknown, one call may be owed."""
        last = loop.loop_step - 1 + self._first
        if metrics is None:
            return
        if self._on_end or is_owed(self._armed, self._span, last):
            self._call(loop, metrics)

    def _end_of(self, loop: Stepping) -> int:
        return UNKNOWN if loop.end_step == UNKNOWN else loop.end_step + self._first
