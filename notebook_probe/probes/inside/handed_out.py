"""Sums that graphs have handed out in one step, and the choice of those that count.

The calls between two backward passes belong to the later pass. A graph does not tell which call a
gradient came back to: where some calls had no gradient, and it cannot be known which, nothing
counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from notebook_probe.probes.inside.origins import Sums, SumsOrigin
from notebook_probe.probes.step.passes import BackwardKind, BackwardPass, BackwardPasses

__all__ = ["CallSums", "HandedOut"]

MOST_SUMS = 100_000
"""Sums kept of one step: in a loop that never ends a step they would fill the memory."""


class CallSums(NamedTuple):
    """Sums of one tensor of a call, and what they are of."""

    row: int
    """Number of the module."""
    where: SumsOrigin
    states: list[tuple[Sums, Any]]
    """Empty of a tensor that was only counted."""
    on_device: bool


@dataclass(slots=True)
class _Segment:
    """Sums of some calls, and of the backward pass that followed them, one of ``passes``."""

    passes: BackwardPasses
    calls: list[CallSums] = field(default_factory=list)
    gradients: list[CallSums] = field(default_factory=list)
    backward: BackwardPass | None = None

    def every(self) -> Iterator[CallSums]:
        yield from self.calls
        yield from self.gradients


class HandedOut:
    """Sums of the step that is open, or of the one that opens next."""

    def __init__(self) -> None:
        self._segments: list[_Segment] = []
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def take_call(self, sums: CallSums, passes: BackwardPasses) -> None:
        """Take the sums of a call."""
        if self._n < MOST_SUMS:
            self._last_open(passes).calls.append(sums)
        self._n += 1

    def take_gradient(self, sums: CallSums, passes: BackwardPasses) -> None:
        """Take the sums of the running backward pass."""
        if self._n < MOST_SUMS:
            self._segment_of(passes).gradients.append(sums)
        self._n += 1

    def extend(self, later: HandedOut) -> None:
        """Take all of what came later."""
        self._segments += later._segments
        self._n += later._n

    def _segment_of(self, passes: BackwardPasses) -> _Segment:
        backward = passes.running()
        for segment in self._segments:
            if segment.backward is backward:
                return segment
        segment = self._last_open(passes)
        segment.backward, segment.passes = backward, passes
        return segment

    def _last_open(self, passes: BackwardPasses) -> _Segment:
        if not self._segments or self._segments[-1].backward is not None:
            self._segments.append(_Segment(passes))
        return self._segments[-1]

    def counted(self) -> list[CallSums] | None:
        """Return the sums that count; None if it cannot be known which do."""
        if self._n > MOST_SUMS:
            return None
        came = [one for one in self._segments if one.backward is not None]
        if not came:
            return [*_all_of(self._segments)]
        kept = [one for one in came if one.backward and _is_kept(one.backward, one.passes)]
        if len(kept) == len(self._segments):
            return [*_all_of(kept)] if _are_balanced(kept) else None
        if not all(_are_balanced([one]) for one in came):
            return None
        return [*_all_of(kept)]


def _is_kept(backward: BackwardPass, passes: BackwardPasses) -> bool:
    if backward.kind is BackwardKind.DIFFERENTIATED or passes.is_discarded(backward):
        return False
    return backward.kind is BackwardKind.ACCUMULATED or passes.is_training(backward)


def _all_of(segments: Iterable[_Segment]) -> Iterator[CallSums]:
    for segment in segments:
        yield from segment.every()


def _are_balanced(segments: Iterable[_Segment]) -> bool:
    """Return whether each call had a gradient, if any module shows it."""
    segments = [*segments]
    calls = [one for segment in segments for one in segment.calls]
    gradients = [one for segment in segments for one in segment.gradients]
    awaited = Counter(one.row for one in calls if one.where.what == "awaited")
    came = Counter(one.row for one in gradients if one.where.what == "gradient")
    if not awaited and not came:
        return True
    return any(came[row] == n for row, n in awaited.items())
