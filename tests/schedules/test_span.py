"""What is known of a run, and since when."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules import UNKNOWN, Span

learnt = st.lists(st.tuples(st.integers(0, 60), st.one_of(st.just(UNKNOWN), st.integers(0, 99))))


@given(start=st.integers(0, 30), learnt=learnt)
def test_at_every_step_the_end_is_what_was_learnt_last_before_it(
    start: int, learnt: list[tuple[int, int]]
) -> None:
    span, held = Span(start), dict.fromkeys(range(100), UNKNOWN)
    for since, end in learnt:
        span = span.until(end, since)
        held |= dict.fromkeys(range(max(since, start), 100), end)
    assert [span.end_at(step) for step in range(100)] == list(held.values())
    assert span.end == held[99]
    pieces = [*span.pieces()]
    stops = [stop for _, stop, _ in pieces]
    assert stops == [*(first for first, _, _ in pieces[1:]), None]
    assert all(span.end_at(first) == end for first, _, end in pieces)


@given(learnt=learnt)
def test_a_span_goes_through_json(learnt: list[tuple[int, int]]) -> None:
    span = Span(3).came_in(5)
    for since, end in learnt:
        span = span.until(end, since)
    read = json.loads(json.dumps(asdict(span)))
    assert Span(**{**read, "ends": tuple(map(tuple, read["ends"]))}) == span


def test_the_first_step_is_that_of_the_run_or_of_who_came_in_later() -> None:
    assert Span(10).first == 10
    assert Span(10).came_in(4).first == 10
    assert Span(10).came_in(40).first == 40


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": 1.5},
        {"seen_from": True},
        {"ends": ((0, -2),)},
        {"ends": ((5, 10), (5, 20))},
        {"ends": ((5, 10), (4, 20))},
        {"ends": ((0, None),)},
    ],
)
def test_what_is_no_span_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ScheduleError):
        Span(**wrong)
