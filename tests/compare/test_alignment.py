"""Steps of one run beside those of another, along every axis, against plain numpy."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.compare import RunAxis, align
from notebook_probe.errors import UnknownNameError
from notebook_probe.record.format.source import Event
from tests.compare.made import made
from tests.record.build import LAW

GAPS = st.lists(st.integers(1, 5000), min_size=2, max_size=40)
LOSSES = st.lists(st.floats(2**-7, 16, width=32), min_size=1, max_size=40)


def first_reached(places: np.ndarray, wanted: float) -> float:
    """The step, between rows as well, at which evenly going places reach ``wanted``."""
    for step in range(len(places)):
        if places[step] == wanted:
            return float(step)
        if step and places[step - 1] < wanted < places[step]:
            return step - 1 + (wanted - places[step - 1]) / (places[step] - places[step - 1])
    return float("nan")


def test_by_step_every_step_stands_at_itself_however_long_the_runs_are() -> None:
    alignment = align(made("a", {"m": [1.0]}), made("b", {"m": [1.0] * 5}))
    assert alignment.steps_there([0, 3, 10**9]).tolist() == [0.0, 3.0, 1e9]
    assert alignment.x_of_other([7]).tolist() == [7.0]


@LAW
@given(GAPS, GAPS)
def test_by_time_rows_stand_where_as_many_seconds_have_passed(a: list[int], b: list[int]) -> None:
    here, there = (np.cumsum([0, *gaps]) / 1000 for gaps in (a, b))
    runs = [made("ab"[i], {"m": [1.0] * len(s)}, seconds=s) for i, s in enumerate((here, there))]
    got = align(runs[0], runs[1], by="time").steps_here(np.arange(len(there)))
    wanted = [first_reached(here, second) for second in there]
    np.testing.assert_allclose(got, wanted, atol=1e-6)


def test_a_break_before_a_run_goes_on_is_time_and_a_clock_set_back_is_none() -> None:
    run = made("a", {"m": [1.0] * 5}, seconds=[0, 1, 100, 99, 101])
    places = RunAxis(run, "time").places
    assert places.at(np.arange(5)).tolist() == [0, 1, 100, 100, 101]
    assert places.steps_at([100.0]).tolist() == [2.0]


@LAW
@given(LOSSES, LOSSES)
def test_by_loss_steps_stand_where_the_least_so_far_is_as_small(
    a: list[float], b: list[float]
) -> None:
    this, other = (made("r", logged={"loss": one}) for one in (a, b))
    alignment = align(this, other, by="loss")
    for step in range(len(a)):
        lowest = min(a[: step + 1])
        reached = [j for j in range(len(b)) if min(b[: j + 1]) <= lowest]
        got = alignment.steps_there([step])[0]
        assert got == reached[0] if reached else np.isnan(got)


@LAW
@given(LOSSES, LOSSES)
def test_by_loss_one_step_is_drawn_at_each_the_first_of_those_that_came_furthest(
    a: list[float], b: list[float]
) -> None:
    this, other = (made("r", logged={"loss": one}) for one in (a, b))
    alignment = align(this, other, by="loss")
    steps = np.arange(len(b))
    x = alignment.x_of_other(steps)
    rows = alignment.drawn(steps, x)
    assert x[rows].tolist() == sorted(set(x[~np.isnan(x)].tolist()))
    lowest = np.minimum.accumulate(b)
    for row in rows:
        [together] = np.nonzero(x == x[row])
        assert row == min(together, key=lambda j: (lowest[j], j))
    as_good = dict(zip(rows.tolist(), x[rows].tolist(), strict=True))
    for here in range(len(a)):
        there = alignment.steps_there([here])[0]
        if not np.isnan(there) and here in x[int(there) :][:1]:
            assert as_good[int(there)] == here


@LAW
@given(GAPS)
def test_by_time_the_first_of_the_rows_of_one_moment_is_drawn(gaps: list[int]) -> None:
    seconds = np.repeat(np.cumsum([0, *gaps]), 2).astype(float)
    run = made("a", {"m": np.ones(len(seconds))}, seconds=seconds)
    steps = np.arange(len(seconds))
    alignment = align(run, run, by="time")
    assert alignment.drawn(steps, alignment.x_of_other(steps)).tolist() == steps[::2].tolist()


def test_a_loss_is_found_by_its_usual_name_and_nan_is_none() -> None:
    a = made("a", logged={"loss": [3.0, np.nan, 1.0]})
    b = made("b", logged={"train/loss": [np.inf, 2.0, 1.0]})
    alignment = align(a, b, by="loss")
    assert alignment.steps_there([0, 1, 2]).tolist() == [1, 1, 2]
    assert alignment.x_of_this([2]).tolist() == [2]
    assert alignment.x_of_other([0, 1, 2]).tolist()[1:] == [2, 2]


@pytest.mark.parametrize(
    ("by", "options", "wanted"),
    [
        ("samples", {"config": {"batch_size": 64}}, [0, 64, 128]),
        ("samples", {"logged": {"samples": [32, 64, 128]}}, [32, 64, 128]),
        ("samples", {"logged": {"samples": [32, 64, 32]}, "config": {"batch": 8}}, [32, 64, 64]),
        ("epochs", {"logged": {"epoch": [0, 0, 1]}}, [0, 0.5, 1]),
        ("epochs", {"logged": {"epoch": [0.25, 0.5, 1]}}, [0.25, 0.5, 1]),
        ("epochs", {"epochs": {0: 0, 2: 1}}, [0, 0.5, 1]),
        ("epochs", {"epochs": {0: 0, 1: 1, 2: 0}}, [0, 1, 2]),
        ("lr", {"logged": {"lr": [3.0, 1.0, 2.0]}}, [3, 1, 1]),
    ],
)
def test_what_each_axis_reads(by: str, options: Any, wanted: list[float]) -> None:
    places = RunAxis(made("a", {"m": [1.0] * 3}, **options), by).places
    assert places.at([0, 1, 2]).tolist() == wanted


@pytest.mark.parametrize("first", [0, 3])
def test_samples_of_a_step_that_change_are_counted_from_the_step_of_the_change(first: int) -> None:
    """Four a step, then eight from step 10 on, then two from step 15 on."""
    run = made("a", {"m": [1.0] * 20})
    run.events = tuple(
        Event(step, 0, "samples", "", json.dumps({"per_step": per_step}))
        for step, per_step in ((first, 4), (10, 8), (15, 2))
    )
    places = RunAxis(run, "samples").places
    assert places.at([0, 1, 10, 12, 15, 20]).tolist() == [0, 4, 40, 56, 80, 90]


def test_the_last_epoch_is_taken_for_as_long_as_the_one_before() -> None:
    places = RunAxis(made("a", {"m": [1.0] * 9}, epochs={0: 0, 4: 1}), "epochs").places
    assert places.at([6, 8]).tolist() == [1.5, 2.0]
    assert np.isnan(places.at([9])[0])


@LAW
@given(st.integers(1, 9), st.integers(1, 9), st.integers(2, 5))
def test_by_epochs_batches_stand_at_the_same_share_of_the_data(a: int, b: int, n: int) -> None:
    """Runs of ``n`` epochs, of ``a`` and ``b`` batches each, that log the number of the epoch."""
    this, other = (made("r", logged={"epoch": np.repeat(np.arange(n), one)}) for one in (a, b))
    got = align(this, other, by="epochs").steps_here(np.arange(n * b))
    np.testing.assert_allclose(got, np.arange(n * b) * a / b)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("samples", r"samples are not recorded in digits-cnn-5; run\.log\(samples=\.\.\.\)"),
        ("epochs", r"epochs are not recorded in digits-cnn-5; run\.log\(epoch=\.\.\.\)"),
        ("loss", "loss is not recorded in digits-cnn-5; allowed: step, time, samples, epochs"),
        ("tiem", "tiem is not recorded .* 'time'"),
    ],
)
def test_what_is_lacking_is_said_by_name(by: str, words: str) -> None:
    has = made("a", {"m": [1.0]}, logged={"samples": [1], "epoch": [0], "loss": [1], "tiem": [1]})
    with pytest.raises(UnknownNameError, match=words):
        align(has, made("digits-cnn-5", {"m": [1.0]}), by=by)


def test_a_batch_size_that_is_none_is_not_taken() -> None:
    for size in ("64", True, 0, None):
        with pytest.raises(UnknownNameError, match="samples"):
            RunAxis(made("a", {"m": [1.0]}, config={"batch_size": size}), "samples")


def test_an_alignment_follows_runs_that_grow_and_reads_each_row_once() -> None:
    a, b = (made(name, logged={"loss": [3.0, 2.0]}) for name in "ab")
    alignment = align(a, b, by="loss")
    assert alignment.steps_here([2]).tolist() == [1]
    for run in (a, b):
        run.given[0].append([2], loss=[[1.0]])
    assert alignment.steps_here([2]).tolist() == [2]
    assert b.given[0].n_values_read == 3


def test_rows_that_were_written_over_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    run = made("a", logged={"loss": [3.0, 2.0]})
    axis = RunAxis(run, "loss")
    assert axis.places.at([1]).tolist() == [2.0]
    run.given[0]._values["loss"][:, 0] = [3.0, 1.0]
    monkeypatch.setattr(type(run.given[0]), "version", (1,))
    monkeypatch.setattr(type(run), "revision", 99)
    assert axis.places.at([1]).tolist() == [1.0]
