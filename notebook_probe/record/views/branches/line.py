"""Events on the line of a history, without those of abandoned branches."""

from __future__ import annotations

from collections.abc import Iterable

from notebook_probe.record.format.notes import BRANCH, CHECKPOINT, TRUNCATE, UNIT
from notebook_probe.record.format.source import Event

__all__ = ["events_of_line"]


def events_of_line(events: Iterable[Event], branch: int | None = None) -> tuple[Event, ...]:
    """Return the events of one branch, and of earlier ones until the next one started.

    Events at steps that were taken back, since the run continued before them, are left out.

    Parameters
    ----------
    events : iterable of Event
        All of a record, in the order in which they were written.
    branch : int, optional
        Branch, from 1; by default the newest.
    """
    line: list[Event] = []
    current = 1
    for event in events:
        if event.kind == BRANCH:
            if current == branch:
                break
            current += 1
        if event.kind in (BRANCH, TRUNCATE):
            line = [one for one in line if _is_before(one, event.step)]
        line.append(event)
    return tuple(line)


def _is_before(event: Event, step: int) -> bool:
    """Return whether an event led to the state at the start of a step, or is about it."""
    return event.step < step or (event.kind in (CHECKPOINT, UNIT) and event.step == step)
