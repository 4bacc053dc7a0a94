"""A bounded number of points, however long a run is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules.numbers import integer
from notebook_probe.schedules.operators import Operators

__all__ = ["KeepN"]

STREAM = re.compile(r"keep_(\d+)(?:_(before_)?(\d+))?")


@dataclass(frozen=True, slots=True)
class KeepN(Operators):
    """Rows of which n // 2 + 1 to n, evenly spaced, are always there to be kept.

    With d = step - offset a step is due when d ≥ 0 is a multiple of its `stride`: every step as
    long as d < n, every second up to 2n, every fourth up to 4n, and so on. Nothing is written
    again; ``run.series(..., kept=True)`` takes those that fit the stride of the last.

    Parameters
    ----------
    n : int
        At least 2.
    offset : int
        First due step.

    Examples
    --------
    >>> [step for step in range(40) if KeepN(4)(step)]
    [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
    """

    n: int
    offset: int = 0

    def __post_init__(self) -> None:
        for name, value in (("n", self.n), ("offset", self.offset)):
            object.__setattr__(self, name, integer(value, f"KeepN({name}={value!r})"))
        if self.n < 2:
            raise ScheduleError(f"KeepN(n={self.n}): at least 2 points are kept")

    @classmethod
    def of_stream(cls, name: str) -> Self | None:
        """Return the schedule of a stream's rows, by its name; None for other schedules."""
        found = STREAM.fullmatch(name)
        if found is None:
            return None
        offset = int(found[3] or 0)
        return cls(int(found[1]), -offset if found[2] else offset)

    def stride(self, step: int) -> int:
        """Least power of two S with (step - offset) // S < n."""
        # In integers: a logarithm would be rounded at powers of two.
        return 1 << (max(step - self.offset, 0) // self.n).bit_length()

    def __call__(self, step: int) -> bool:
        return step >= self.offset and (step - self.offset) % self.stride(step) == 0

    @property
    def stream(self) -> str:
        if self.offset == 0:
            return f"keep_{self.n}"
        return f"keep_{self.n}_{'before_' if self.offset < 0 else ''}{abs(self.offset)}"

    def next_due(self, step: int) -> int | None:
        due = max(step, self.offset)
        while not self(due):  # at most twice: the stride may have grown before a multiple
            stride = self.stride(due)
            due = self.offset + -(-(due - self.offset) // stride) * stride
        return due

    def __str__(self) -> str:
        return f"keep({self.n}, {self.offset})" if self.offset else f"keep({self.n})"
