"""Step numbers that a loop has given to the steps of its run, and schedules for them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from notebook_probe.schedules import Schedule

__all__ = ["Numbered", "Numbers"]


class Numbers:
    """Steps of a run and the numbers from ``track``; the steps themselves without numbers.

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
        self._pace = _Pace()

    def give(self, step: int, number: int) -> None:
        """Call a step of the run so; steps come in their order, the last one perhaps again."""
        self._pace = self._pace.at(step, number)
        self._drop(step)
        self._shift = shift = number - step
        last = self._spans[-1] if self._spans else None
        if last is not None and (last.shift, last.stop) == (shift, step):
            last.stop += 1
        else:
            self._spans.append(_Span(step, step + 1, shift))

    def expected(self, step: int) -> int:
        """Return the expected number of a step that may be untracked: numbers grow by one."""
        given = self.given(step)
        return step + self._shift if given is None else given

    def possible(self, step: int) -> tuple[int, ...]:
        """Return the numbers that a step may have: that it was given, or those it may be given.

        A loop may count its updates, whether it tracks each of them or not, or how often it has
        tracked. Schedules are asked before it tells.
        """
        given = self.given(step)
        if given is not None:
            return (given,)
        by_updates, by_tracks = self.expected(step), self._pace.next_number(step)
        return (by_updates,) if by_tracks in (None, by_updates) else (by_updates, by_tracks)

    def given(self, step: int) -> int | None:
        """Return the number of a step; None if it was not tracked though others were."""
        if not self._spans:
            return step
        span = self._spans[bisect_right(self._spans, step, key=lambda one: one.start) - 1]
        return step + span.shift if span.start <= step < span.stop else None

    def of(self, step: int) -> int | None:
        """Return the number of a step; None if forgotten."""
        return self.given(step) if step >= self._first else None

    def step_of(self, number: int) -> int:
        """Return the last step with that number."""
        found = (
            number - span.shift
            for span in reversed(self._spans)
            if span.start <= number - span.shift < span.stop
        )
        return next(found, number - self._shift)

    def forget(self, before: int) -> None:
        """Forget the numbers of the steps before that one."""
        self._first = before
        earlier, last = self._spans[:-1], self._spans[-1:]  # which says that numbers were given
        self._spans = [*(span for span in earlier if span.stop > before), *last]

    def _drop(self, step: int) -> None:
        """Take back the number of the last step."""
        if self._spans and self._spans[-1].stop > step:
            self._spans[-1].stop = step
            if self._spans[-1].start >= step:
                self._spans.pop()


@dataclass(frozen=True, slots=True)
class _Pace:
    """Number of steps between two tracked ones, and the difference of their numbers."""

    step: int = -1
    number: int = 0
    """Step and number of the last tracked one."""
    steps: int = 0
    """0 as long as it is not known, or where the last two differ."""
    numbers: int = 1

    def at(self, step: int, number: int) -> _Pace:
        """Return the pace once a step is tracked."""
        if self.step < 0 or step <= self.step:
            return _Pace(step, number, self.steps, self.numbers)
        steps, numbers = step - self.step, number - self.number
        is_steady = self.steps in (0, steps)
        return _Pace(step, number, steps if is_steady else 0, numbers)

    def next_number(self, step: int) -> int | None:
        """Return the number of a step if it is tracked next; None where it is too early for it."""
        is_early = step - self.step < self.steps
        return None if self.step < 0 or is_early else self.number + self.numbers


@dataclass(slots=True)
class _Span:
    """Steps with consecutive numbers."""

    start: int
    stop: int
    shift: int


@dataclass(frozen=True, slots=True)
class Numbered:
    """Schedule that is called with the loop's own step numbers."""

    schedule: Schedule
    numbers: Numbers

    def __call__(self, step: int) -> bool:
        return any(self.schedule(number) for number in self.numbers.possible(step))

    @property
    def stream(self) -> str:
        return self.schedule.stream

    def __str__(self) -> str:
        return str(self.schedule)
