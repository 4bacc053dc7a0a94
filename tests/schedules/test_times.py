"""So many times in a run, against a loop that counts its calls."""

from __future__ import annotations

from itertools import accumulate
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules import (
    Every,
    Span,
    Times,
    bound,
    can_foresee,
    include_last,
    is_owed,
    schedule,
)
from tests.schedules.asked import due_steps, in_epochs, learnt

starts = st.integers(0, 500)
counts = st.integers(0, 40)
totals = st.integers(0, 300)


@given(n=counts, start=starts, total=totals)
def test_a_known_run_is_split_evenly_and_its_last_step_is_one_of_them(
    n: int, start: int, total: int
) -> None:
    one = Times(n).bound(Span(start).until(start + total))
    whole = sorted({start + ceil(i * total / n) - 1 for i in range(1, n + 1)}) if total else []
    expected = whole if n < total else [*range(start, start + total)] if n else []
    assert due_steps(one, 0, start + total + 50) == expected
    assert len(expected) == min(n, total)


@given(n=st.integers(1, 40), total=st.integers(1, 300), resumed=st.integers(0, 300))
def test_a_run_that_is_resumed_has_the_rest_of_the_list(n: int, total: int, resumed: int) -> None:
    span = Span(7).until(7 + total)
    whole = due_steps(Times(n).bound(span), 7, 7 + total)
    again = Times(n).bound(Span(7).until(7 + total))
    assert due_steps(again, resumed, 7 + total) == [step for step in whole if step >= resumed]


def test_while_nobody_knows_the_end_it_is_due_when_128_256_512_steps_are_done() -> None:
    assert due_steps(Times(20), 0, 3000) == [127, 255, 511, 1023, 2047]
    assert due_steps(Times(20).bound(Span(1000)), 0, 3000) == [1127, 1255, 1511, 2023]


@given(n=st.integers(1, 6), total=st.integers(1, 5000))
def test_of_an_end_that_nobody_knew_the_last_step_is_owed(n: int, total: int) -> None:
    one, span = Times(n), Span()
    found = due_steps(one, 0, total)
    owed = is_owed(one, span, total - 1)
    assert owed is (total - 1 not in found)
    assert len(found) + owed <= n


def counting(n: int, start: int, ends: list[tuple[int, int]], stop: int) -> list[int]:
    """What a loop calls that counts, keeps one call for the last step and makes up for none."""
    found: list[int] = []
    held, before = -1, 0
    for step in range(start, stop):
        now = next((end for since, end in reversed(ends) if max(since, start) <= step), -1)
        if now != held:
            held, before = now, len(found)
        done, total = step + 1 - start, held - start
        if held == -1:
            due = done in (128, 256, 512, 1024, 2048, 4096) and len(found) < n - 1
        elif n >= total:
            due = done <= total
        else:
            points = {ceil(i * total / n) for i in range(1, n) if i > before}
            due = done in points | {total}
        if due and n:
            found.append(step)
    return found


@given(
    n=st.integers(0, 30),
    start=st.integers(0, 300),
    ends=st.lists(
        st.tuples(st.integers(0, 1500), st.one_of(st.just(-1), st.integers(0, 1800))), max_size=4
    ),
)
def test_what_is_learnt_of_the_end_counts_from_then_on(
    n: int, start: int, ends: list[tuple[int, int]]
) -> None:
    ends = sorted(dict(ends).items())
    found = due_steps(Times(n).bound(learnt(start, ends)), 0, 2000)
    assert found == counting(n, start, ends, 2000)


@given(n=st.integers(1, 30), known=st.integers(1, 2500), total=st.integers(1, 2500))
def test_once_the_end_is_known_the_rest_follows_and_there_are_never_more_than_n(
    n: int, known: int, total: int
) -> None:
    span = Span().until(total, since=min(known, total - 1))
    found = due_steps(Times(n).bound(span), 0, total + 500)
    assert len(found) <= n
    assert found[-1] == total - 1


@given(n=st.integers(1, 12), lengths=st.lists(st.integers(1, 400), min_size=1, max_size=6))
def test_epochs_of_unequal_length_end_with_a_call_and_a_wrong_guess_costs_one_at_most(
    n: int, lengths: list[int]
) -> None:
    found, owed = in_epochs(Times(n), lengths)
    ends = list(accumulate(lengths))
    last = ends[-1] - 1
    assert owed is (last not in found)
    reached = 0
    for epoch, (end, length) in enumerate(zip(ends, lengths, strict=True)):
        held, asked_again = end + length * (len(ends) - epoch - 1), [*ends[epoch + 1 :], 0][0]
        reached += end < held <= min(asked_again, last)
    assert len([step for step in found if step < last]) <= n - 1 + reached


def test_epochs_that_are_all_alike_have_the_even_split_once_the_first_is_over() -> None:
    assert in_epochs(Times(5), [1000] * 5) == ([127, 255, 511, 3999, 4999], False)
    assert in_epochs(Times(10), [100] * 5) == (EVEN_REST, False)


EVEN_REST = [149, 199, 249, 299, 349, 399, 449, 499]
"""The 50th and the 100th step had passed before anybody knew."""


def test_a_second_run_of_the_loop_is_split_anew() -> None:
    one = bound(Times(4), Span().until(100))
    again = bound(one, Span(100).until(140))
    assert due_steps(again, 100, 200) == [109, 119, 129, 139]


def test_whoever_is_bound_later_gives_the_answers_of_whoever_was_there() -> None:
    span = Span(10).until(500, since=200).until(700, since=400)
    there = bound(bound(bound(Times(9), Span(10)), Span(10).until(500, since=200)), span)
    assert bound(Times(9), span) == there
    assert hash(bound(Times(9), span)) == hash(there)


def test_none_is_due_past_an_old_estimate() -> None:
    one = Times(4).bound(Span().until(100))
    assert due_steps(one, 0, 1000) == [24, 49, 74, 99]


def test_0_is_never_not_even_at_the_end() -> None:
    assert due_steps(Times(0), 0, 2000) == []
    assert not is_owed(Times(0), Span(), 1999)
    assert not is_owed(Times(0).bound(Span().until(10)), Span().until(10), 9)


@pytest.mark.parametrize(
    ("wrong", "said"), [(-1, "from 0"), (True, "an integer"), (2.5, "an integer")]
)
def test_a_wrong_number_is_refused_with_what_was_given(wrong: object, said: str) -> None:
    with pytest.raises(ScheduleError, match=rf"^Times\({wrong}\): .*{said}"):
        Times(wrong)  # type: ignore[arg-type]


@given(start=starts, total=st.integers(1, 200), n=st.integers(1, 30))
def test_the_last_step_is_included_where_it_is_known_and_owed_where_it_is_not(
    start: int, total: int, n: int
) -> None:
    last = start + total - 1
    known = Span(start).until(last + 1)
    one = include_last(Every(n))
    expected = sorted({*due_steps(Every(n), start, last + 1), last})
    assert due_steps(one.bound(known), start, last + 1) == expected
    assert not is_owed(one.bound(known), known, last)
    unknown = one.bound(Span(start))
    found = due_steps(unknown, start, last + 1)
    assert found + [last] * is_owed(unknown, Span(start), last) == expected


@given(
    n=st.integers(0, 30),
    start=st.integers(0, 100),
    ends=st.lists(
        st.tuples(st.integers(0, 400), st.one_of(st.just(-1), st.integers(0, 500))), max_size=4
    ),
    text=st.sampled_from(
        [
            "times({n})",
            "include_last(every({m}, 3))",
            "include_first(include_last(times({n})))",
            "include_last(every({m})) & between(50, 300)",
            "times({n}) | include_last(geometric(10, 1.5))",
        ]
    ),
)
def test_what_a_bound_schedule_foresees_and_a_resumed_run_are_the_rest_of_the_list(
    n: int, start: int, ends: list[tuple[int, int]], text: str
) -> None:
    span = learnt(start, sorted(dict(ends).items()))
    one = bound(schedule(text.format(n=n, m=n + 1)), span)
    whole = due_steps(one, start, 600)
    assert can_foresee(one)
    for step in range(start, 600, 37):
        rest = [due for due in whole if due >= step]
        again = bound(schedule(text.format(n=n, m=n + 1)), span)
        assert due_steps(again, step, 600) == rest
        found = again.next_due(step) if can_foresee(again) else None
        assert (found in rest[:1]) if rest else (found is None or found >= 600)
