"""Schedule that is due at regular intervals of steps."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules.numbers import integer
from notebook_probe.schedules.operators import Operators

__all__ = ["Every"]


@dataclass(frozen=True, slots=True)
class Every(Operators):
    """Every ``n`` steps from ``offset`` on: ``step >= offset and (step - offset) % n == 0``.

    Parameters
    ----------
    n : int
        Interval, at least 1.
    offset : int
        First step that is due (when not negative).

    Examples
    --------
    >>> [step for step in range(12) if Every(5, 1)(step)]
    [1, 6, 11]
    """

    n: int
    offset: int = 0

    def __post_init__(self) -> None:
        for name, value in (("n", self.n), ("offset", self.offset)):
            object.__setattr__(self, name, integer(value, f"Every({name}={value!r})"))
        if self.n < 1:
            raise ScheduleError(f"Every(n={self.n}): the interval must be at least 1")

    def __call__(self, step: int) -> bool:
        return step >= self.offset and (step - self.offset) % self.n == 0

    @property
    def stream(self) -> str:
        phase = self.offset % self.n  # a later start on the same grid needs no separate axis
        return f"every_{self.n}" if phase == 0 else f"every_{self.n}_{phase}"

    def next_due(self, step: int) -> int | None:
        past = max(step - self.offset, 0)
        return self.offset + -(-past // self.n) * self.n

    def __str__(self) -> str:
        return f"every({self.n}, {self.offset})" if self.offset else f"every({self.n})"
