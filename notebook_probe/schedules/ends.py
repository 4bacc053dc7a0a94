"""First and last step in addition to another schedule."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_probe.schedules.arming import bound, can_foresee
from notebook_probe.schedules.numbers import hashed_name
from notebook_probe.schedules.operators import Operators
from notebook_probe.schedules.protocols import Schedule
from notebook_probe.schedules.span import UNBOUND, Span

__all__ = ["IncludeFirst", "IncludeLast"]


@dataclass(frozen=True, slots=True)
class IncludeFirst(Operators):
    """Additionally due at the first step that is seen; made by `include_first`."""

    part: Schedule
    span: Span = UNBOUND

    def bound(self, span: Span) -> IncludeFirst:
        return IncludeFirst(bound(self.part, span), span)

    def __call__(self, step: int) -> bool:
        return self.part(step) or step == self.span.first

    @property
    def parts(self) -> tuple[Schedule, ...]:
        return (self.part,)

    @property
    def stream(self) -> str:
        return hashed_name("include_first", str(self))

    def next_due(self, step: int) -> int | None:
        due, first = _next_due(self.part, step), self.span.first
        return first if first >= step and (due is None or first < due) else due

    def __str__(self) -> str:
        return f"include_first({self.part})"


@dataclass(frozen=True, slots=True)
class IncludeLast(Operators):
    """Additionally due at the last step of the run; made by `include_last`."""

    part: Schedule
    span: Span = UNBOUND

    def bound(self, span: Span) -> IncludeLast:
        return IncludeLast(bound(self.part, span), span)

    def __call__(self, step: int) -> bool:
        is_last = self.span.start <= step == self.span.end_at(step) - 1
        return self.part(step) or is_last

    @property
    def parts(self) -> tuple[Schedule, ...]:
        return (self.part,)

    @property
    def stream(self) -> str:
        return hashed_name("include_last", str(self))

    def next_due(self, step: int) -> int | None:
        due = _next_due(self.part, step)
        lasts = (end - 1 for _, _, end in self.span.pieces())
        # The end that was assumed for a stretch may have changed before it was reached.
        found = [last for last in lasts if last >= step and self(last)]
        return min(found if due is None else [*found, due], default=None)

    def __str__(self) -> str:
        return f"include_last({self.part})"


def _next_due(part: Schedule, step: int) -> int | None:
    return part.next_due(step) if can_foresee(part) else None
