"""Span of a run: its first and last step, if known; schedules are bound to it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules.numbers import integer

__all__ = ["UNBOUND", "UNKNOWN", "Piece", "Span"]

UNKNOWN = -1
"""Unknown end of a run."""

Piece = tuple[int, int | None, int]
"""First step, step behind the last (None: open), and the assumed end."""


@dataclass(frozen=True, slots=True)
class Span:
    """The steps of a run: integers alone, which a checkpoint can keep as JSON.

    A newly known end counts from then on, so that the answer for a step never changes, and later
    users of the same span give the same answers.

    Parameters
    ----------
    start : int
        First step of the run.
    seen_from : int
        First step that the observer may see; later than the start for one added later, or after a
        resume.
    ends : tuple of (since, end)
        From step ``since`` on the run was assumed to end before step ``end``; `UNKNOWN` is -1.

    Examples
    --------
    >>> span = Span(start=100).until(300, since=150)
    >>> span.end_at(149), span.end_at(150), span.end
    (-1, 300, 300)
    """

    start: int = 0
    seen_from: int = 0
    ends: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        for name in ("start", "seen_from"):
            value = getattr(self, name)
            object.__setattr__(self, name, integer(value, f"Span({name}={value!r})"))
        pairs = [
            (integer(since, f"ends={self.ends!r}"), integer(end, f"ends={self.ends!r}"))
            for since, end in self.ends
        ]
        if any(end < UNKNOWN for _, end in pairs):
            raise ScheduleError(f"Span(ends={self.ends!r}): steps from 0, or -1 for unknown")
        if any(one[0] >= other[0] for one, other in pairwise(pairs)):
            raise ScheduleError(f"Span(ends={self.ends!r}): steps in order are expected")
        object.__setattr__(self, "ends", tuple(pairs))

    @property
    def first(self) -> int:
        """First step of the run that the schedule can see."""
        return max(self.start, self.seen_from)

    @property
    def end(self) -> int:
        """The step after the last one, as known now; -1 if unknown."""
        return self.ends[-1][1] if self.ends else UNKNOWN

    def end_at(self, step: int) -> int:
        """Return the end that was assumed at a step."""
        place = bisect_right(self.ends, step, key=lambda pair: pair[0])
        return self.ends[place - 1][1] if place else UNKNOWN

    def until(self, end: int, since: int | None = None) -> Self:
        """Return the span with an end known from step ``since`` on; by default from its start.

        Ends learned at that step or later are forgotten: the run went back.
        """
        since = self.start if since is None else max(since, self.start)
        before = tuple(pair for pair in self.ends if pair[0] < since)
        held = before[-1][1] if before else UNKNOWN
        return replace(self, ends=before if held == end else (*before, (since, end)))

    def came_in(self, step: int) -> Self:
        """Return the span of an observer that starts at ``step``."""
        return replace(self, seen_from=step)

    def pieces(self) -> Iterator[Piece]:
        """Yield the stretches with the same assumed end, in order."""
        first, end = self.start, UNKNOWN
        for since, learnt in self.ends:
            if since > first:
                yield first, since, end
            first, end = max(first, since), learnt
        yield first, None, end


UNBOUND = Span()
"""Span of an unbound schedule: a run from step 0, of unknown length."""
