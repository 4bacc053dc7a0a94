"""Averages read out of streams, against averages of all the values at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from notebook_probe.record.format.missing import MEASURED_NAN, measured
from notebook_probe.record.views.thinning.averages import Averages, average_between
from tests.explorer.fakes import FakeStream

ALL = 2**40


def average(values: np.ndarray, weight: float) -> np.ndarray:
    """Of finite values, at each of them."""
    total = mass = 0.0
    found = []
    for value in values.astype(np.float64).tolist():
        total, mass = weight * total + value, weight * mass + 1
        found.append(total / mass)
    return np.array(found)


def stream_of(values: np.ndarray, name: str = "every_1", every: int = 1) -> FakeStream:
    stream = FakeStream(name, [f"m{place}" for place in range(values.shape[1])], ["q"])
    stream.append(every * np.arange(len(values)), q=values)
    return stream


@pytest.mark.parametrize("weight", [0.9, 0.999])
@pytest.mark.parametrize("cuts", [[0, 5000], [0, 1, 2, 700, 4999, 5000]])
def test_a_growing_stream_is_averaged_at_every_step(weight: float, cuts: list[int]) -> None:
    values = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)
    stream = FakeStream("s", ["m0", "m1", "m2"], ["q"])
    averages = Averages("q", ["m0", "m2"], weight, log=False, thin=False)
    for a, b in pairwise(cuts):
        stream.append(range(a, b), q=values[a:b])
        averages.read_new({"s": stream}, ALL)
    assert stream.n_values_read == 2 * 5000
    for place in (0, 2):
        column = averages.columns[f"m{place}"]
        np.testing.assert_array_equal(column.steps, np.arange(5000))
        np.testing.assert_allclose(column.values, average(values[:, place], weight), rtol=1e-4)


def test_what_was_not_measured_and_what_is_not_finite_ages_nothing() -> None:
    values = np.random.default_rng(1).random((400, 1)).astype(np.float32)
    values[:100], values[200:250], values[300:310] = np.nan, np.nan, MEASURED_NAN
    averages = Averages("q", ["m0"], 0.9, log=False, thin=False)
    averages.read_new({"s": stream_of(values)}, ALL)
    column, known = averages.columns["m0"], measured(values[:, 0])
    finite = np.isfinite(values[:, 0])
    np.testing.assert_array_equal(column.steps, np.flatnonzero(known))
    np.testing.assert_array_equal(column.steps[column.nonfinite], np.arange(300, 310))
    drawn = column.values[np.isfinite(column.values)]
    np.testing.assert_allclose(drawn, average(values[finite, 0], 0.9), rtol=1e-5)


def test_a_series_moved_to_another_schedule_and_back_has_one_average() -> None:
    rng = np.random.default_rng(2)
    every_1, every_10 = FakeStream("every_1", ["m0"], ["q"]), FakeStream("every_10", ["m0"], ["q"])
    first, second, third = rng.random(100), rng.random(10), rng.random(50)
    every_1.append(range(100), q=first[:, None])
    every_10.append(range(100, 200, 10), q=second[:, None])
    every_1.append(range(200, 250), q=third[:, None])
    expected = average(np.concatenate([first, second, third]).astype(np.float32), 0.9)
    streams = {"every_1": every_1, "every_10": every_10}
    averages = Averages("q", ["m0"], 0.9, log=False, thin=False)
    for _ in range(60):
        averages.read_new(streams, 1)
    np.testing.assert_allclose(averages.columns["m0"].values, expected, rtol=1e-5)
    assert averages.share(streams) == 1.0
    steps, found = average_between(streams, "m0", "q", (150.0, 230.0), 0.9, log=False)
    inside = (averages.columns["m0"].steps >= 150) & (averages.columns["m0"].steps <= 230)
    np.testing.assert_array_equal(steps, averages.columns["m0"].steps[inside])
    np.testing.assert_allclose(found, expected[inside], rtol=1e-5)


def test_rows_that_come_late_begin_the_average_again() -> None:
    one, other = FakeStream("one", ["m0"], ["q"]), FakeStream("other", ["m0"], ["q"])
    one.append(range(0, 20, 2), q=np.arange(0.0, 20, 2)[:, None])
    averages = Averages("q", ["m0"], 0.9, log=False, thin=False)
    averages.read_new({"one": one}, ALL)
    other.append(range(1, 20, 2), q=np.arange(1.0, 20, 2)[:, None])
    averages.read_new({"one": one, "other": other}, ALL)
    expected = average(np.arange(20.0), 0.9)
    np.testing.assert_allclose(averages.columns["m0"].values, expected, rtol=1e-6)


def test_a_thin_column_keeps_the_ends_and_every_extreme_of_the_average() -> None:
    values = np.random.default_rng(3).random((10_000, 1)).astype(np.float32)
    values[3000:3003], values[7000, 0] = 50.0, MEASURED_NAN
    averages = Averages("q", ["m0"], 0.9, log=False, thin=True)
    averages.read_new({"s": stream_of(values)}, ALL)
    column, finite = averages.columns["m0"], np.isfinite(values[:, 0])
    expected = np.full(10_000, np.nan)
    expected[finite] = average(values[finite, 0], 0.9)
    np.testing.assert_allclose(column.values, expected[column.steps], rtol=1e-5)
    assert len(column.steps) < 10_000 / 25
    for start in range(0, 9984, 64):
        inside = column.values[(column.steps >= start) & (column.steps < start + 64)]
        assert np.nanmax(inside) == pytest.approx(np.nanmax(expected[start : start + 64]))
        assert np.nanmin(inside) == pytest.approx(np.nanmin(expected[start : start + 64]))
    assert {0, 7000, 9999} <= set(column.steps.tolist())


@pytest.mark.parametrize("weight", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("measured_every", [1, 7])
def test_a_part_of_a_series_is_averaged_as_if_all_before_it_were(
    weight: float, measured_every: int
) -> None:
    values = np.full((60_000, 1), np.nan, np.float32)
    rng = np.random.default_rng(4)
    values[::measured_every, 0] = 1e3 * rng.random(len(values[::measured_every]))
    values[20_000 // measured_every * measured_every] = 1e6
    stream = stream_of(values)
    known = np.flatnonzero(np.isfinite(values[:, 0]))
    expected = average(values[known, 0], weight)
    inside = (known >= 50_000) & (known <= 50_200)
    steps, found = average_between(
        {"s": stream}, "m0", "q", (50_000.0, 50_200.0), weight, log=False
    )
    np.testing.assert_array_equal(steps, known[inside])
    np.testing.assert_allclose(found, expected[inside], rtol=1e-6)
