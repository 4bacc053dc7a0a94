"""More and more rarely, by a factor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules.numbers import integer, number_text, real, stream_name
from notebook_probe.schedules.operators import Operators

__all__ = ["Geometric"]


@dataclass(frozen=True, slots=True)
class Geometric(Operators):
    """Schedule due at ``start``, then at intervals that grow by ``factor``, at least by 1.

    With c = k = start, the first, again and again k ← max(⌊k·factor + ½⌋, k + 1) and c ← c + k.

    Parameters
    ----------
    start : int
        First due step, and first interval; at least 1.
    factor : float
        Greater than 1.

    Examples
    --------
    >>> [step for step in range(1000) if Geometric(100, 1.2)(step)]
    [100, 220, 364, 537, 745, 995]
    """

    start: int
    factor: float
    _reached: list[tuple[int, int]] = field(
        init=False, repr=False, compare=False, default_factory=list
    )
    """Last due step and interval that were found, in a list of one: the search starts there.

    It is a cache; no result depends on it.
    """

    def __post_init__(self) -> None:
        where = f"Geometric({self.start!r}, {self.factor!r})"
        object.__setattr__(self, "start", integer(self.start, where))
        object.__setattr__(self, "factor", real(self.factor, where))
        if self.start < 1 or self.factor <= 1:
            raise ScheduleError(f"{where}: a start from 1 and a factor above 1 are expected")
        self._reached.append((self.start, self.start))

    def __call__(self, step: int) -> bool:
        return self.next_due(step) == step

    @property
    def stream(self) -> str:
        return stream_name(str(self))

    def next_due(self, step: int) -> int | None:
        due, interval = self._reached[0]
        if due - interval >= step:  # asked of the past: from the beginning
            due = interval = self.start
        while due < step:
            interval = max(math.floor(interval * self.factor + 0.5), interval + 1)
            due += interval
        self._reached[0] = due, interval
        return due

    def __str__(self) -> str:
        return f"geometric({self.start}, {number_text(self.factor)})"
