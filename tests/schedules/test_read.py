"""What a user may give for a schedule, and `Every`, `Steps` and functions against formulas."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules import Custom, Every, Schedule, Steps, schedule

intervals = st.integers(1, 50)
offsets = st.integers(-100, 100)
steps = st.integers(0, 500)


@given(n=intervals, offset=offsets, step=steps)
def test_every_is_due_at_its_offset_and_each_n_steps_after(n: int, offset: int, step: int) -> None:
    due = step in range(offset, 501, n)
    assert Every(n, offset)(step) is due


@given(n=intervals, offset=offsets)
def test_an_every_is_read_back_from_its_own_text(n: int, offset: int) -> None:
    assert schedule(str(Every(n, offset))) == Every(n, offset)


@given(n=intervals, a=offsets, b=offsets)
def test_two_schedules_share_a_stream_only_on_the_same_grid(n: int, a: int, b: int) -> None:
    assert (Every(n, a).stream == Every(n, b).stream) is ((a - b) % n == 0)


@given(numbers=st.frozensets(steps), step=steps)
def test_steps_are_due_exactly_where_they_say(numbers: frozenset[int], step: int) -> None:
    assert Steps(numbers)(step) is (step in numbers)
    assert Steps(sorted(numbers)) == Steps(numbers)
    assert Steps(sorted(numbers)).stream == Steps(numbers).stream
    assert Steps(numbers).stream.isidentifier()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("every(5)", Every(5)),
        ("every(5,2)", Every(5, 2)),
        ("  every ( 5 , -2 )  ", Every(5, -2)),
        ("linear(5,0)", Every(5)),
        ("linear(5, 2)", Every(5, 2)),
        ("linear(5)", Every(5)),
        ("linear(0,0)", Every(1)),
        ("linear( 0 , 0 )", Every(1)),
        ("every 5", Every(5)),
        ("  every   5 ", Every(5)),
        ("5", Every(5)),
        (" 10 ", Every(10)),
        ("", Every(1)),
        ("   ", Every(1)),
        (None, Every(1)),
        (7, Every(7)),
        (np.int64(7), Every(7)),
    ],
)
def test_every_written_form_means_one_schedule(text: str | int | None, meant: Every) -> None:
    assert schedule(text) == meant


def given_as(text: str) -> str:
    return f"^schedule {text!r}".replace("(", r"\(").replace(")", r"\)")


@pytest.mark.parametrize(
    "text",
    [
        "linear",
        "linear()",
        "every()",
        "every(1.5)",
        "every(x)",
        "every(0)",
        "every(-3, 1)",
        "linear(0)",
        "linear(0, 5)",
        "every(1, 2, 3)",
        "sometimes(3)",
        "every(5",
        "every",
        "every5",
        "every 0",
        "-5",
        "5 6",
        "5.0",
        "every five",
        "every(5) every(6)",
        "every((5))",
    ],
)
def test_text_that_is_no_schedule_says_what_was_given(text: str) -> None:
    with pytest.raises(ScheduleError, match=given_as(text)):
        schedule(text)


def test_text_that_does_not_parse_says_what_is_allowed() -> None:
    with pytest.raises(ScheduleError, match=r"Allowed are every\(1\), every\(50\)"):
        schedule("evrey(5)")


@pytest.mark.parametrize("wrong", [0, -1, True, False, 2.5, [1, 2], {1: 2}, b"every(5)"])
def test_what_is_no_schedule_is_refused(wrong: object) -> None:
    with pytest.raises(ScheduleError):
        schedule(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [Every, Steps, int])
def test_a_class_is_no_schedule_even_one_of_ours(wrong: type) -> None:
    with pytest.raises(ScheduleError, match="is no schedule; allowed"):
        schedule(wrong)


@pytest.mark.parametrize("wrong", [True, 1.5, "5", None])
def test_numbers_of_a_schedule_are_integers(wrong: object) -> None:
    for make in (lambda: Every(wrong), lambda: Every(5, wrong), lambda: Steps([0, wrong])):  # type: ignore[arg-type, list-item]
        with pytest.raises(ScheduleError, match="an integer is expected"):
            make()


def test_numpy_integers_count_as_integers() -> None:
    assert Every(np.int64(5), np.int32(2)) == Every(5, 2)  # type: ignore[arg-type]
    assert Every(np.int64(5)).stream == "every_5"  # type: ignore[arg-type]
    assert Steps(np.array([3, 1])) == Steps({1, 3})


def test_an_interval_below_one_is_refused() -> None:
    with pytest.raises(ScheduleError, match=r"Every\(n=0\): the interval must be at least 1"):
        Every(0)


def test_a_function_is_a_schedule_and_the_same_function_is_the_same_one() -> None:
    def doubling(step: int) -> bool:
        return step & (step - 1) == 0

    found = schedule(doubling)
    assert found == schedule(doubling) == Custom(doubling)
    assert [step for step in range(9) if found(step)] == [0, 1, 2, 4, 8]
    assert found.stream == "custom_doubling"
    assert str(found) == "doubling"


def test_a_lambda_has_a_stream_name_too() -> None:
    assert schedule(lambda step: True).stream == "custom_lambda"


def test_a_users_own_frozen_schedule_is_taken_as_it_is() -> None:
    @dataclass(frozen=True)
    class Squares:
        stream = "squares"

        def __call__(self, step: int) -> bool:
            return int(step**0.5) ** 2 == step

    mine: object = Squares()
    assert schedule(Squares()) == mine
    assert isinstance(Squares(), Schedule)


def test_an_unhashable_schedule_is_refused_when_it_is_given() -> None:
    @dataclass
    class Mutable:
        n: int = 1

        def __call__(self, step: int) -> bool:
            return step % self.n == 0

    with pytest.raises(ScheduleError, match="must be hashable"):
        schedule(Mutable())
