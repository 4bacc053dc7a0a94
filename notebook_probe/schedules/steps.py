"""Steps one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from notebook_probe.schedules.numbers import hashed_name, integer
from notebook_probe.schedules.operators import Operators

__all__ = ["Steps"]


@dataclass(frozen=True, slots=True)
class Steps(Operators):
    """Exactly the given steps.

    Examples
    --------
    >>> [step for step in range(9) if Steps({0, 4, 8})(step)]
    [0, 4, 8]
    """

    steps: frozenset[int]

    def __init__(self, steps: Iterable[int]) -> None:
        whole = frozenset(integer(step, f"Steps({step!r})") for step in steps)
        object.__setattr__(self, "steps", whole)

    def __call__(self, step: int) -> bool:
        return step in self.steps

    @property
    def stream(self) -> str:
        return hashed_name("steps", str(self))

    def next_due(self, step: int) -> int | None:
        return min((due for due in self.steps if due >= step), default=None)

    def __str__(self) -> str:
        return f"steps({', '.join(map(str, sorted(self.steps)))})"
