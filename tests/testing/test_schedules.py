"""Our schedules pass the suite that others inherit; the suite finds faults in others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from notebook_probe.schedules import (
    Every,
    Geometric,
    KeepN,
    Seconds,
    Steps,
    Times,
    between,
    include_first,
    include_last,
    schedule,
)
from notebook_probe.testing import ScheduleSuite


def squares(step: int) -> bool:
    return round(step**0.5) ** 2 == step


class TestOurs(ScheduleSuite):
    schedules = ("every(1)", "linear(5, 2)", 7, Every(4, -3), Steps({0, 4, 29}), squares)


class TestFunctionsOfTheStep(ScheduleSuite):
    schedules = (
        Geometric(1, 1.5),
        KeepN(4),
        KeepN(4, 10),
        between(5, 25),
        Every(2) & Every(3),
        Every(10) | Steps({1, 2}) | squares,
        schedule("every(3) & (between(0, 9) | between(20, 30))"),
        include_first("every(10, 9)"),
        include_last("every(10)"),
    )


class TestTimes(ScheduleSuite):
    schedules = (Times(4), Times(3) & Every(1), include_first(Times(2)))
    steps = 300


class Ticks:
    """A clock that can be copied, which itertools.count() cannot from Python 3.14 on."""

    def __init__(self) -> None:
        self._seconds = -1

    def __call__(self) -> int:
        self._seconds += 1
        return self._seconds


class TestSeconds(ScheduleSuite):
    """A second passes with every look at the clock."""

    schedules = (
        Seconds(0, Ticks()),
        Seconds(3, Ticks()),
        Seconds(4, Ticks()) | Every(10),
        include_first(Seconds(5, Ticks())),
    )


@dataclass(frozen=True)
class Doubling:
    """1, 2, 4, 8, ...; its faults are given."""

    answer: Any = True
    name: str = "doubling"
    late: int = 0

    def __call__(self, step: int) -> Any:
        return self.answer if step & (step - 1) == 0 else False

    @property
    def stream(self) -> str:
        return self.name

    def next_due(self, step: int) -> int:
        return self.late + (0 if not step else 1 << (step - 1).bit_length())


class TestDoubling(ScheduleSuite):
    schedules = (Doubling(),)


class Counting:
    """Due at every second question."""

    n = 0

    def __call__(self, step: int) -> bool:
        self.n += 1
        return self.n % 2 == 0


@pytest.mark.parametrize(
    ("given", "test", "said"),
    [
        (Doubling(answer=1), "it_says_yes_or_no_at_any_step", "says 1 at step 0"),
        (Doubling(name="../x"), "its_rows_have_a_name_that_a_record_can_hold", "stream '../x'"),
        (Doubling(late=1), "what_it_foresees_is_when_it_is_due", "foresees 1 at 0"),
        (Counting(), "it_says_the_same_whenever_and_however_often_it_is_asked", "depends on when"),
        (Steps({99}), "it_is_due_sometimes", "never due before step 30"),
    ],
)
def test_a_fault_is_found(given: Any, test: str, said: str) -> None:
    suite: Any = type("Given", (ScheduleSuite,), {"schedules": (given,)})()
    with pytest.raises(AssertionError, match=said):
        getattr(suite, f"test_{test}")()
