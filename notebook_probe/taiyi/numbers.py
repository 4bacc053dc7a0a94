"""Which number a loop has given to each step of its run, and schedules that count by them."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_probe.schedules import Schedule

__all__ = ["Numbered", "Numbers"]


class Numbers:
    """Steps of a run and the numbers that ``track`` gave them; as they are, while it gave none.

    Examples
    --------
    >>> numbers = Numbers()
    >>> numbers.of(3)
    3
    >>> numbers.give(0, 100)
    >>> numbers.of(0), numbers.of(1), numbers.expected(1)
    (100, None, 101)
    """

    def __init__(self) -> None:
        self._given: dict[int, int] = {}
        self._shift = 0
        self._are_given = False
        self._first = 0

    def give(self, step: int, number: int) -> None:
        """Call a step of the run so."""
        self._given[step] = number
        self._shift, self._are_given = number - step, True

    def expected(self, step: int) -> int:
        """The number of a step that may not have been tracked yet: they go on by one."""
        return self._given.get(step, step + self._shift)

    def of(self, step: int) -> int | None:
        """The number of a step; None for one that was not tracked where others were."""
        if step < self._first:
            return None
        return self._given.get(step) if self._are_given else step

    def step_of(self, number: int) -> int:
        """The last step of that number."""
        steps = (step for step, given in self._given.items() if given == number)
        return max(steps, default=number - self._shift)

    def forget(self, before: int) -> None:
        """Have no number any more for the steps before that one."""
        self._first = before
        self._given = {step: number for step, number in self._given.items() if step >= before}


@dataclass(frozen=True, slots=True)
class Numbered:
    """A schedule that is asked for the loop's own number of a step."""

    schedule: Schedule
    numbers: Numbers

    def __call__(self, step: int) -> bool:
        return self.schedule(self.numbers.expected(step))

    @property
    def stream(self) -> str:
        return self.schedule.stream

    def __str__(self) -> str:
        return str(self.schedule)
