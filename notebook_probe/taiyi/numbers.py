"""Which number a loop has given to each step of its run, and schedules that count by them."""

from __future__ import annotations

from bisect import bisect_right
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
        self._spans: list[_Span] = []
        self._shift = self._first = 0

    def give(self, step: int, number: int) -> None:
        """Call a step of the run so; steps come in their order, the last one perhaps again."""
        self._drop(step)
        self._shift = shift = number - step
        last = self._spans[-1] if self._spans else None
        if last is not None and (last.shift, last.stop) == (shift, step):
            last.stop += 1
        else:
            self._spans.append(_Span(step, step + 1, shift))

    def expected(self, step: int) -> int:
        """The number of a step that may not have been tracked yet: they go on by one."""
        given = self.given(step)
        return step + self._shift if given is None else given

    def given(self, step: int) -> int | None:
        """The number of a step; None for one that was not tracked where others were."""
        if not self._spans:
            return step
        span = self._spans[bisect_right(self._spans, step, key=lambda one: one.start) - 1]
        return step + span.shift if span.start <= step < span.stop else None

    def of(self, step: int) -> int | None:
        """The number of a step; None, too, for what is forgotten."""
        return self.given(step) if step >= self._first else None

    def step_of(self, number: int) -> int:
        """The last step of that number."""
        found = (
            number - span.shift
            for span in reversed(self._spans)
            if span.start <= number - span.shift < span.stop
        )
        return next(found, number - self._shift)

    def forget(self, before: int) -> None:
        """Have no number any more for the steps before that one."""
        self._first = before
        earlier, last = self._spans[:-1], self._spans[-1:]  # which says that numbers were given
        self._spans = [*(span for span in earlier if span.stop > before), *last]

    def _drop(self, step: int) -> None:
        """Take back the number of the last step."""
        if self._spans and self._spans[-1].stop > step:
            self._spans[-1].stop = step
            if self._spans[-1].start >= step:
                self._spans.pop()


@dataclass(slots=True)
class _Span:
    """Steps whose numbers go on by one."""

    start: int
    stop: int
    shift: int


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
