"""A range of steps."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules.numbers import integer, stream_name
from notebook_probe.schedules.operators import Operators

__all__ = ["Between", "between"]


@dataclass(frozen=True, slots=True)
class Between(Operators):
    """Every step from ``start`` up to but not including ``stop``; made by `between`."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        for name, value in (("start", self.start), ("stop", self.stop)):
            # The dataclass is frozen; checked values replace the given ones.
            object.__setattr__(self, name, integer(value, f"between({name}={value!r})"))
        if self.start >= self.stop:
            raise ScheduleError(f"{self}: no step is in this range; the second must be greater")

    def __call__(self, step: int) -> bool:
        return self.start <= step < self.stop

    @property
    def stream(self) -> str:
        return stream_name(str(self))

    def next_due(self, step: int) -> int | None:
        due = max(self.start, step)
        return due if due < self.stop else None

    def __str__(self) -> str:
        return f"between({self.start}, {self.stop})"


def between(start: int, stop: int) -> Between:
    """Return a schedule for steps from ``start`` to ``stop - 1``; mostly combined with others.

    Raises
    ------
    ScheduleError
        For anything but two integers, the second greater.

    Examples
    --------
    >>> from notebook_probe.schedules import Every
    >>> [step for step in range(200) if (Every(50) & between(100, 200))(step)]
    [100, 150]
    """
    return Between(start, stop)
