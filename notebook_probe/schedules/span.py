"""From where to where a run goes, as far as is known: what schedules are bound to."""

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
"""The end of a run of which nobody knows it yet."""

Piece = tuple[int, int | None, int]
"""First step, step behind the last (None: open), and what was held for the end meanwhile."""


@dataclass(frozen=True, slots=True)
class Span:
    """The steps of a run: integers alone, which a checkpoint can keep as JSON.

    What is learnt of the end counts from then on, so that the answer for a step stays what it was,
    and whoever is bound to the same span later gives the same answers.

    Parameters
    ----------
    start : int
        First step of the run.
    seen_from : int
        First step that whoever asks may see; one that came in later, or after a resume.
    ends : tuple of (since, end)
        From step ``since`` on the run was held to end before step ``end``; `UNKNOWN` is -1.

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
        """The first step of the run that whoever asks can see."""
        return max(self.start, self.seen_from)

    @property
    def end(self) -> int:
        """One past the last step, by what is known now; -1 when nothing is."""
        return self.ends[-1][1] if self.ends else UNKNOWN

    def end_at(self, step: int) -> int:
        """What was held for the end at a step."""
        place = bisect_right(self.ends, step, key=lambda pair: pair[0])
        return self.ends[place - 1][1] if place else UNKNOWN

    def until(self, end: int, since: int | None = None) -> Self:
        """The span with an end that is known from step ``since`` on; from its start by default.

        What was learnt at that step or later is forgotten: the run went back.
        """
        since = self.start if since is None else max(since, self.start)
        before = tuple(pair for pair in self.ends if pair[0] < since)
        held = before[-1][1] if before else UNKNOWN
        return replace(self, ends=before if held == end else (*before, (since, end)))

    def came_in(self, step: int) -> Self:
        """The span of somebody who sees it from ``step`` on."""
        return replace(self, seen_from=step)

    def pieces(self) -> Iterator[Piece]:
        """The stretches over which one end was held, in order."""
        first, end = self.start, UNKNOWN
        for since, learnt in self.ends:
            if since > first:
                yield first, since, end
            first, end = max(first, since), learnt
        yield first, None, end


UNBOUND = Span()
"""What a schedule answers for that nobody has bound: a run from step 0, of unknown length."""
