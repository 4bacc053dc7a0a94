"""Every other schedule against its definition, written out step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules import (
    AllOf,
    AnyOf,
    Every,
    Geometric,
    KeepN,
    Schedule,
    Seconds,
    Span,
    Steps,
    between,
    bound,
    can_foresee,
    has_clock,
    include_first,
    is_owed,
    restart,
    schedule,
)
from tests.schedules.asked import due_steps

STOP = 400
factors = st.floats(1.0, 1e6, exclude_min=True)


# ---------------------------------------------------------------- Geometric


def grown(start: int, factor: float, stop: int) -> list[int]:
    found, interval = [start], start
    while found[-1] < stop:
        interval = max(math.floor(interval * factor + 0.5), interval + 1)
        found.append(found[-1] + interval)
    return found[:-1] if found[-1] >= stop else found


def test_a_hundred_times_1_2_is_the_list_of_the_definition() -> None:
    assert due_steps(Geometric(100, 1.2), 0, 1700) == [100, 220, 364, 537, 745, 995, 1295, 1655]


@given(start=st.integers(1, 300), factor=factors)
def test_geometric_intervals_grow_by_the_factor_and_by_one_at_least(
    start: int, factor: float
) -> None:
    assert due_steps(Geometric(start, factor), 0, STOP) == [
        due for due in grown(start, factor, STOP) if due < STOP
    ]


@given(start=st.integers(1, 50), factor=factors, asked=st.lists(st.integers(0, STOP)))
def test_geometric_answers_alike_in_whatever_order_it_is_asked(
    start: int, factor: float, asked: list[int]
) -> None:
    one, expected = Geometric(start, factor), set(grown(start, factor, STOP + 1))
    assert [one(step) for step in asked] == [step in expected for step in asked]


def test_small_starts_grow_too() -> None:
    assert due_steps(Geometric(1, 1.01), 0, 30) == [1, 3, 6, 10, 15, 21, 28]


@pytest.mark.parametrize(
    "given", [(0, 2), (-5, 2), (1, 1), (1, 0.5), (1, math.nan), (1, math.inf), (1.5, 2), (1, "2")]
)
def test_a_geometric_schedule_that_would_not_grow_is_refused(given: tuple[int, float]) -> None:
    with pytest.raises(ScheduleError, match=r"^Geometric\(") as error:
        Geometric(*given)
    assert repr(given[1]) in str(error.value)


# ---------------------------------------------------------------- KeepN


def stride_of(d: int, n: int) -> int:
    stride = 1
    while d // stride >= n:
        stride *= 2
    return stride


@given(n=st.integers(2, 40), offset=st.integers(-50, 100))
def test_keep_is_due_at_the_multiples_of_a_stride_that_doubles(n: int, offset: int) -> None:
    expected = [
        step
        for step in range(STOP)
        if step >= offset and (step - offset) % stride_of(step - offset, n) == 0
    ]
    assert due_steps(KeepN(n, offset), 0, STOP) == expected


@given(n=st.integers(2, 30), offset=st.integers(0, 60))
def test_what_fits_the_last_stride_is_evenly_spaced_and_was_written_at_any_time(
    n: int, offset: int
) -> None:
    one = KeepN(n, offset)
    written = due_steps(one, 0, STOP)
    for last in range(offset + n, STOP):
        kept = range(offset, last + 1, one.stride(last))
        assert set(kept) <= set(written)
        assert n // 2 + 1 <= len(kept) <= n


@given(n=st.integers(2, 10**6), offset=st.integers(-(10**6), 10**6))
def test_a_stream_tells_the_schedule_of_its_rows(n: int, offset: int) -> None:
    assert KeepN.of_stream(KeepN(n, offset).stream) == KeepN(n, offset)


@pytest.mark.parametrize("name", ["every_1", "keep", "keep_", "keep_5_x", "my_keep_5", "times_5"])
def test_other_streams_are_no_keep(name: str) -> None:
    assert KeepN.of_stream(name) is None


@pytest.mark.parametrize("wrong", [1, 0, -3, True, 2.0])
def test_fewer_than_two_points_cannot_be_kept(wrong: object) -> None:
    with pytest.raises(ScheduleError, match=rf"^KeepN\(n={wrong}\): "):
        KeepN(wrong)  # type: ignore[arg-type]


# ---------------------------------------------------------------- between, &, |


@given(start=st.integers(-20, 50), length=st.integers(1, 50))
def test_between_has_its_first_step_and_not_its_last(start: int, length: int) -> None:
    assert due_steps(between(start, start + length), -20, 120) == [*range(start, start + length)]


@pytest.mark.parametrize("wrong", [(5, 5), (6, 5)])
def test_a_range_without_a_step_is_refused(wrong: tuple[int, int]) -> None:
    with pytest.raises(ScheduleError, match=r"^between\(\d, 5\): no step is in this range"):
        between(*wrong)


simple: st.SearchStrategy[Schedule] = st.one_of(
    st.builds(Every, st.integers(1, 20), st.integers(-5, 20)),
    st.builds(Steps, st.frozensets(st.integers(0, 99))),
    st.builds(lambda a, n: between(a, a + n), st.integers(0, 80), st.integers(1, 60)),
    st.builds(KeepN, st.integers(2, 20), st.integers(0, 20)),
    st.builds(Geometric, st.integers(1, 20), factors),
)
composed = st.recursive(
    simple,
    lambda parts: st.one_of(
        st.builds(lambda one, other: one & other, parts, parts),
        st.builds(lambda one, other: one | other, parts, parts),
        st.builds(include_first, parts),
    ),
    max_leaves=6,
)


@given(one=composed, other=composed)
def test_and_and_or_are_those_of_sets(one: Schedule, other: Schedule) -> None:
    first, second = set(due_steps(one, 0, 100)), set(due_steps(other, 0, 100))
    assert due_steps(AllOf((one, other)), 0, 100) == sorted(first & second)
    assert due_steps(AnyOf((one, other)), 0, 100) == sorted(first | second)


@given(one=composed)
def test_what_is_composed_foresees_what_it_answers(one: Schedule) -> None:
    due = due_steps(one, 0, 100)
    assert can_foresee(one)
    for step in range(0, 100, 7):
        later = [other for other in due if other >= step]
        found = one.next_due(step)
        assert (found in later[:1]) if later else (found is None or found >= 100)


@given(one=composed, other=composed, third=composed)
def test_grouping_makes_no_difference(one: Schedule, other: Schedule, third: Schedule) -> None:
    assert AllOf((AllOf((one, other)), third)) == AllOf((one, AllOf((other, third))))
    assert AnyOf((AnyOf((one, other)), third)) == AnyOf((one, AnyOf((other, third))))


def test_a_function_may_stand_beside_a_schedule_on_either_side() -> None:
    def odd(step: int) -> bool:
        return step % 2 == 1

    assert due_steps(Every(3) & odd, 0, 12) == [3, 9]
    assert due_steps(odd & Every(3), 0, 12) == [3, 9]
    assert due_steps(Every(4) | odd, 0, 6) == [0, 1, 3, 4, 5]
    assert due_steps(odd | Every(4), 0, 6) == [0, 1, 3, 4, 5]
    assert not can_foresee(Every(3) & odd)


@pytest.mark.parametrize("wrong", [5, "every(5)", None, Every])
def test_what_is_no_schedule_cannot_stand_beside_one(wrong: object) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        Every(5) & wrong  # type: ignore[operator]
    with pytest.raises(ScheduleError, match="is no schedule"):
        AnyOf((Every(5), wrong))  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match="two schedules or more"):
        AllOf((Every(5),))


# ---------------------------------------------------------------- first


@given(start=st.integers(0, 50), seen=st.integers(0, 100), n=st.integers(1, 30))
def test_the_first_step_is_the_first_that_is_seen(start: int, seen: int, n: int) -> None:
    one = include_first(Every(n, n - 1)).bound(Span(start).came_in(seen))
    first = max(start, seen)
    assert due_steps(one, first, 150) == sorted({first, *due_steps(Every(n, n - 1), first, 150)})
    assert due_steps(one, 0, first) == due_steps(Every(n, n - 1), 0, first)


def test_binding_reaches_into_what_is_composed() -> None:
    one = schedule("include_last(every(50) & between(10, 1000)) | times(3)")
    armed = bound(one, Span(100).until(170))
    assert due_steps(armed, 100, 200) == [100, 123, 146, 150, 169]
    assert str(armed) == str(one)
    assert armed.stream == one.stream


# ---------------------------------------------------------------- Seconds


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@given(
    period=st.floats(0, 10),
    durations=st.lists(st.floats(0, 7), max_size=60),
    work=st.floats(0, 20),
)
def test_seconds_are_counted_from_the_first_step_and_then_from_the_end_of_the_work(
    period: float, durations: list[float], work: float
) -> None:
    clock, found = Clock(), list[int]()
    expected: list[int] = []
    armed = bound(Seconds(period, clock), Span())
    since = None
    for step, duration in enumerate(durations):
        clock.now += duration
        if since is None:
            since = clock.now
        elif clock.now - since >= period:
            expected.append(step)
        if armed(step):
            found.append(step)
            clock.now += work
            restart(armed)
        if expected[-1:] == [step]:
            since = clock.now
    assert found == expected


def test_a_long_pause_is_one_due_step_and_0_is_all_but_the_first() -> None:
    clock = Clock()
    armed, always = bound(Seconds(5, clock), Span()), bound(Seconds(0, clock), Span())
    found = []
    for step in range(10):
        clock.now += 1000 if step == 4 else 0.1
        found += [step] if armed(step) else []
        restart(armed) if armed(step) else None
        assert always(step) is (step > 0)
        restart(always)
    assert found == [4]


def test_seconds_are_decided_once_per_step_and_go_on_when_more_is_known() -> None:
    clock = Clock()
    armed = bound(Seconds(5, clock), Span())
    assert not armed(0)
    clock.now += 4
    assert not armed(1)
    clock.now += 4
    assert not armed(1)
    assert bound(armed, Span().until(10)) is armed
    assert armed(2)
    restart(armed)
    assert armed(2)
    assert not armed(3)
    assert not is_owed(armed, Span(), 3)


def test_each_who_arms_seconds_has_a_clock_of_its_own() -> None:
    clock = Clock()
    one = Seconds(5, clock)
    first, second = bound(one, Span()), bound(one, Span())
    assert not first(0)
    clock.now += 6
    assert first(1)
    assert not second(1)
    assert has_clock(first)
    assert not has_clock(Every(5))


def test_parts_of_what_is_composed_keep_time_together() -> None:
    clock = Clock()
    armed = bound(Every(10) & Seconds(30, clock), Span())
    found = []
    for step in range(60):
        if armed(step):
            found.append(step)
            restart(armed)
        clock.now += 2
    assert found == [20, 40]
    assert has_clock(armed)
    assert not can_foresee(armed)


def test_seconds_that_nobody_has_armed_say_what_to_do() -> None:
    with pytest.raises(ScheduleError, match=r"seconds\(5\) has no clock that runs: arm it"):
        Seconds(5)(0)


@pytest.mark.parametrize("wrong", [-1, True, math.inf, math.nan, "5", None])
def test_a_wrong_time_is_refused(wrong: object) -> None:
    with pytest.raises(ScheduleError, match=r"^Seconds\("):
        Seconds(wrong)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    assert Seconds(np.float64(0.5)) == Seconds(0.5)
    assert Geometric(np.int64(5), np.float32(1.5)) == Geometric(5, 1.5)  # type: ignore[arg-type]


@given(one=composed)
def test_equal_values_are_one_schedule(one: Schedule) -> None:
    again = schedule(str(one))
    assume(again is not one)
    assert (again, hash(again), again.stream) == (one, hash(one), one.stream)
