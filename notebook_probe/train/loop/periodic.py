"""Calling something at the due steps of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from notebook_probe.schedules import Schedule, Span, bound, is_owed, restart
from notebook_probe.train.metrics.averages import Value

__all__ = ["Periodic"]


class Stepping(Protocol):
    """What a callback needs to know of its loop."""

    loop_step: int
    start_step: int
    end_step: int


class Periodic:
    """Calls ``call(loop, metrics)`` at the due steps; it takes part in a loop.

    Parameters
    ----------
    schedule : Schedule
        Armed anew as each run of the loop begins, and told of the end as more is known of it.
    call : callable
    call_on_end : bool
        Call it once more when the loop has ended, even after a call at the last step.
    """

    def __init__(
        self,
        schedule: Schedule,
        call: Callable[[Any, Mapping[str, Value]], Any],
        call_on_end: bool = False,
    ) -> None:
        if not callable(call):
            raise TypeError(f"{call!r}: a function (loop, metrics) is expected")
        self._schedule, self._call, self._on_end = schedule, call, call_on_end
        self._span = Span()
        self._armed = bound(schedule, self._span)

    def on_start(self, loop: Stepping, data: Any) -> None:
        """A run of the loop begins."""
        start = loop.start_step
        self._span = Span(start, seen_from=start).until(loop.end_step)
        self._armed = bound(self._schedule, self._span)

    def on_step(self, loop: Stepping, metrics: Mapping[str, Value]) -> None:
        """A step is done."""
        if loop.end_step != self._span.end:
            self._span = self._span.until(loop.end_step, since=loop.loop_step)
            self._armed = bound(self._armed, self._span)
        if self._armed(loop.loop_step):
            self._call(loop, metrics)
            restart(self._armed)

    def on_end(self, loop: Stepping, metrics: Mapping[str, Value] | None) -> None:
        """All steps are done; of a length that nobody knew one call may be owed."""
        last = loop.loop_step - 1
        if metrics is None:
            return
        if self._on_end or is_owed(self._armed, self._span, last):
            self._call(loop, metrics)
