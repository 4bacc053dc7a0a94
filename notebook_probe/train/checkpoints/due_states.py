"""States of a training in a schedule."""

from __future__ import annotations

from notebook_probe.schedules import UNKNOWN, Schedule, Span, bound, is_owed, restart

__all__ = ["DueStates"]


class DueStates:
    """Schedule of states, the number of updates completed, instead of steps.

    Parameters
    ----------
    schedule : Schedule

    Examples
    --------
    >>> from notebook_probe.schedules import Times
    >>> due = DueStates(Times(2))
    >>> due.begin(0, 10)
    >>> [state for state in range(1, 11) if due(state, 10)]
    [5, 10]
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule, self._span = schedule, Span()
        self._armed = bound(schedule, self._span)

    def begin(self, start: int, end: int) -> None:
        """Start a run of a loop from ``start`` to before ``end``; -1 is unknown."""
        # The first step makes the state after it, which is one further.
        self._span = Span(start + 1, seen_from=start + 1).until(_state(end))
        self._armed = bound(self._schedule, self._span)

    def __call__(self, state: int, end: int) -> bool:
        if _state(end) != self._span.end:
            self._span = self._span.until(_state(end), since=state)
            self._armed = bound(self._armed, self._span)
        return self._armed(state)

    def done(self) -> None:
        """Note that the state was saved, which restarts schedules by seconds."""
        restart(self._armed)

    def is_owed(self, last: int) -> bool:
        """Return whether the last state should have been due, had the end been known."""
        return is_owed(self._armed, self._span, last)


def _state(end: int) -> int:
    return UNKNOWN if end == UNKNOWN else end + 1
