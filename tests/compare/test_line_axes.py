"""Positions of lines along epochs, against a count of epochs in plain Python."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.compare import EpochAxis
from notebook_probe.compare.line_axes import LineAxes, line_axis
from notebook_probe.errors import UnknownNameError
from notebook_probe.record.format.source import Event
from tests.compare.made import Made, made
from tests.record.build import LAW

STARTS = st.dictionaries(st.integers(0, 400), st.just(0), min_size=1, max_size=12)


def epoch_of(step: int, starts: list[int], n_steps: int) -> Fraction:
    """The epoch in which a step is, and the share of it before the step."""
    lengths = [Fraction(stop - start) for start, stop in pairwise(starts)]
    lengths = lengths or [Fraction(max(1, n_steps - starts[0]))]
    if step < starts[0]:
        length = max(lengths[0], Fraction(starts[0] + 1))
        return (step - starts[0]) / length
    number = max(k for k, start in enumerate(starts) if start <= step)
    length = lengths[number] if number < len(lengths) else lengths[-1]
    return number + (step - starts[number]) / length


@LAW
@given(STARTS, st.integers(1, 500))
def test_a_step_is_at_its_epoch_and_the_share_of_it_that_was_trained(
    found: dict[int, int], n_steps: int
) -> None:
    starts = sorted(found)
    run = made("a", {"m": np.ones(n_steps)}, epochs={s: k for k, s in enumerate(starts)})
    steps = np.arange(0, 600, 7)
    got = EpochAxis(run).at(steps)
    wanted = [float(epoch_of(step, starts, n_steps)) for step in steps.tolist()]
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    assert got.min() > -1, "a logarithmic axis begins at epoch -1"
    assert (np.diff(got) > 0).all()


@LAW
@given(STARTS)
def test_the_knots_are_the_turns_of_the_axis(found: dict[int, int]) -> None:
    axis = line_axis(
        made("a", {"m": np.ones(450)}, epochs={s: k for k, s in enumerate(sorted(found))}), "epoch"
    )
    steps, epochs = zip(*axis.knots, strict=True)
    inner = np.arange(steps[0], steps[-1] + 1)
    np.testing.assert_allclose(np.interp(inner, steps, epochs), axis.at(inner), atol=1e-7)


def test_evenly_long_epochs_have_two_knots_and_many_uneven_ones_at_most_five_hundred() -> None:
    even = made("a", {"m": [1.0]}, epochs={5 * k: k for k in range(900)})
    assert line_axis(even, "epoch").knots == [(0.0, 0.0), (4500.0, 900.0)]
    uneven = made("a", {"m": [1.0]}, epochs={k * k: k for k in range(900)})
    assert len(line_axis(uneven, "epoch").knots) == 500


def test_until_the_second_epoch_starts_the_recorded_steps_fill_the_first() -> None:
    run = made("a", {"m": np.ones(10)}, epochs={0: 0})
    axis = line_axis(run, "epoch")
    assert axis.at([0, 5, 10]).tolist() == [0.0, 0.5, 1.0]
    run.given[0].append(range(10, 20), norm=np.ones((10, 1)))
    axis.read_new(run)
    assert axis.at([0, 5, 10]).tolist() == [0.0, 0.25, 0.5]
    run.events = (*run.events, Event(20, 0, "epoch", "", json.dumps({"epoch": 1})))
    axis.read_new(run)
    assert axis.at([10, 20, 40]).tolist() == [0.5, 1.0, 2.0]


def test_a_loop_that_logs_its_epoch_has_them_from_there() -> None:
    run = made("a", logged={"epoch": [0, 0, 1, 1, 1, 1, 2, 2]})
    assert EpochAxis(run).at([1, 2, 4, 6, 7]).tolist() == [0.5, 1.0, 1.5, 2.0, 2.25]


def test_epochs_that_are_logged_at_their_end_leave_the_steps_before_within_one_epoch() -> None:
    run = made("a", logged={"epoch": [0, 1, 2]}, logged_steps=[9, 19, 29])
    np.testing.assert_allclose(EpochAxis(run).at([0, 9, 24]), [-0.9, 0, 1.5])


@pytest.mark.parametrize("logged", [None, {"epoch": [np.nan]}])
def test_a_run_without_epochs_says_how_to_record_them(
    logged: dict[str, list[float]] | None,
) -> None:
    run = made("a", {"m": [1.0]}, logged=logged)
    with pytest.raises(UnknownNameError, match=r"epochs are not recorded in a; run\.log\(epoch"):
        line_axis(run, "epoch")


def drawn(run: Made, axes: LineAxes) -> tuple[str, list[str]]:
    return axes.drawn(run, "epoch").name, [*axes.refused]


def test_lines_are_over_steps_until_the_first_epoch_is_noted() -> None:
    run, axes = made("a", {"m": np.ones(10)}), LineAxes()
    assert drawn(run, axes) == ("step", ["epoch"])
    run.events = (Event(0, 0, "epoch", "", json.dumps({"epoch": 0})),)
    assert drawn(run, axes) == ("epoch", [])
    assert drawn(made("b", {"m": [1.0]}), axes) == ("step", ["epoch"]), "of another run"


def test_time_is_that_of_the_rows_and_of_events() -> None:
    run = made("a", {"m": np.ones(3)}, seconds=[0, 2, 6])
    axis = line_axis(run, "time")
    assert axis.of_rows(["every_1"], np.array([0, 2])).tolist() == [0.0, 6.0]
    assert axis.at([1.5]).tolist() == [4.0]
    assert axis.of_event(Event(1, run.given[0].times()[0] + 500, "attach", "")) == 0.5
