"""Asking schedules step by step, as a loop does."""

from __future__ import annotations

from collections.abc import Sequence

from notebook_probe.schedules import UNKNOWN, Schedule, Span, bound, is_owed, restart


def due_steps(one: Schedule, start: int, stop: int) -> list[int]:
    return [step for step in range(start, stop) if one(step)]


def in_epochs(one: Schedule, lengths: Sequence[int], start: int = 0) -> tuple[list[int], bool]:
    """Due steps of a loop that learns the length of an epoch when it is over; and what is owed.

    As GoMLX's RunEpochs does: the end is unknown in the first epoch, and from then on held to be
    as far away as the epochs that are left would be, were they all like the last one.
    """
    span, step, found = Span(start), start, []
    armed = bound(one, span)
    for epoch, length in enumerate(lengths):
        for _ in range(length):
            if armed(step):
                found.append(step)
                restart(armed)
            step += 1
        left = len(lengths) - epoch - 1
        if left:
            span = span.until(step + length * left, since=step)
            armed = bound(armed, span)
    return found, is_owed(armed, span, step - 1)


def learnt(start: int, ends: Sequence[tuple[int, int]]) -> Span:
    """A span whose ends were learnt one after the other, -1 for unknown."""
    span = Span(start)
    for since, end in ends:
        assert end >= UNKNOWN
        span = span.until(end, since)
    return span
