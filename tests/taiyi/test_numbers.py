"""Numbers of steps, against a plain dict of all that was given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.schedules import Every
from notebook_probe.taiyi.numbers import Numbered, Numbers

TRACKED = st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 20)), min_size=1, max_size=30)
"""How many steps later each was tracked, 0 for the same again, and its number."""


@given(TRACKED)
def test_each_step_has_the_number_that_it_was_given_last(tracked: list[tuple[int, int]]) -> None:
    numbers, wanted, step = Numbers(), dict[int, int](), 0
    for later, number in tracked:
        step += later
        numbers.give(step, number)
        wanted[step] = number
    assert [numbers.of(one) for one in range(step + 5)] == [*map(wanted.get, range(step + 5))]
    for number in wanted.values():
        assert numbers.step_of(number) == max(s for s, n in wanted.items() if n == number)
    assert numbers.expected(step + 2) == wanted[step] + 2


@given(TRACKED, st.integers(0, 40))
def test_what_is_forgotten_has_no_number(tracked: list[tuple[int, int]], before: int) -> None:
    numbers, step = Numbers(), 0
    for later, number in tracked:
        step += later
        numbers.give(step, number)
    kept = [numbers.of(one) for one in range(before, 100)]
    numbers.forget(before)
    assert [numbers.of(one) for one in range(before)] == [None] * before
    assert [numbers.of(one) for one in range(before, step + 1)] == kept[: max(0, step + 1 - before)]


def test_forgetting_gives_no_numbers_of_ones_own_to_steps_that_were_not_tracked() -> None:
    plain, sparse = Numbers(), Numbers()
    sparse.give(0, 0)
    plain.forget(5)
    sparse.forget(5)
    assert [plain.of(4), plain.of(5)] == [None, 5]
    assert [sparse.of(0), sparse.of(5)] == [None, None]


def test_many_steps_in_a_row_take_no_room() -> None:
    numbers = Numbers()
    for step in range(100_000):
        numbers.give(step, step + 7)
    assert len(numbers._spans) == 1
    assert numbers.step_of(50_007) == 50_000


def test_a_schedule_is_asked_for_the_number_that_is_to_come() -> None:
    numbers = Numbers()
    due = Numbered(Every(5), numbers)
    numbers.give(0, 8)
    assert [step for step in range(10) if due(step)] == [2, 7]
    assert (str(due), due.stream) == ("every(5)", "every_5")
