"""Steps that are measured whole, though a budget would not, because something has happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from notebook_probe.probes.due.due_probes import DueProbes
from notebook_probe.probes.step.sink import EventSink
from notebook_probe.record.format.notes import WHOLE

__all__ = ["OTHER_PROBES", "WholeSteps"]

OTHER_PROBES = "other quantities are measured"


class WholeSteps:
    """Requests to measure the next steps whole; any thread may ask.

    Parameters
    ----------
    track : DueProbes
    events : EventSink
        Each range of steps is one, with its reason.

    Attributes
    ----------
    wake : callable
        Makes the next boundary between two steps look here.
    """

    def __init__(self, track: DueProbes, events: EventSink) -> None:
        self._track, self._events = track, events
        self.wake: Callable[[], None] = lambda: None
        self._asked: deque[tuple[int, str]] = deque()
        self._last = -1

    def ask(self, step: int, why: str) -> None:
        """Ask for the next steps because of what happened at ``step``."""
        self._asked.append((step, why))
        self.wake()

    def look(self, step: int) -> None:
        """Begin to measure whole steps if requested; called between two steps."""
        reasons: list[str] = []
        # Any thread may append meanwhile; popleft of a deque is atomic.
        while self._asked:
            happened, why = self._asked.popleft()
            # An alert comes a while after its step: steps since may have been measured whole.
            reasons += [why] if happened > self._last else []
        steps = self._track.measure_whole(step) if reasons else range(0)
        if steps:
            self._last = steps[-1]
            why = ", ".join(dict.fromkeys(reasons))
            text = f"steps {steps[0]} to {steps[-1]} are measured whole: {why}"
            self._events.event(step, WHOLE, text)
