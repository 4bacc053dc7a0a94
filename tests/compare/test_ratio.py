"""The cells of the difference map, against a mean of every column by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.compare import RatioGrid, ratio
from notebook_probe.compare.deviation import smoothed
from notebook_probe.record.views.thinning.heat_grid import LOST, MEASURED, UNMEASURED, HeatGrid
from tests.compare.made import Made, made
from tests.record.build import LAW

NORMS = st.lists(st.floats(2**-10, 2**10, width=32), min_size=1, max_size=90)


def columns_of(run: Made, n_columns: int) -> list[np.ndarray]:
    """Steps of each column of the heat map."""
    heat = HeatGrid("norm", n_columns)
    heat.read_new(run)
    grid = heat.grid(["m"])
    assert grid is not None
    starts = grid.first + grid.size * np.arange(grid.mean.shape[1])
    return [np.arange(start, start + grid.size) for start in starts]


@LAW
@given(NORMS, NORMS, st.sampled_from([4, 16, 700]))
def test_a_cell_is_the_log_ratio_of_means_on_the_columns_of_the_heat_map(
    a: list[float], b: list[float], n_columns: int
) -> None:
    this, other = made("a", {"m": a}), made("b", {"m": b})
    found = ratio(this, other, "norm", n_columns=n_columns)
    assert found is not None
    assert not found.is_signed
    assert found.limit == 1.0
    columns = columns_of(this, n_columns)
    assert found.apart.shape == (1, len(columns))
    for cell, state, steps in zip(found.apart[0], found.state[0], columns, strict=True):
        here, there = (np.array(run)[steps[steps < len(run)]] for run in (a, b))
        assert state == (MEASURED if len(there) else UNMEASURED)
        if len(there) == len(steps):
            np.testing.assert_allclose(cell, np.log10(here.mean() / there.mean()), atol=1e-5)
        elif len(there):  # the last: cells of unequal length count alike
            ends = np.log10(here.mean() / [there.max(), there.min()])
            assert ends[0] - 1e-5 <= cell <= ends[1] + 1e-5


@LAW
@given(st.integers(2, 7), st.integers(5, 40))
def test_a_run_that_is_slower_is_the_same_by_samples(times: int, n: int) -> None:
    """Of a batch so many times smaller each step stands at as many of the other's."""
    values = np.exp(np.sin(np.arange(n)))
    this = made("a", {"m": np.repeat(values, times)}, config={"batch_size": 10})
    other = made("b", {"m": values}, config={"batch_size": 10 * times})
    found = ratio(this, other, "norm", by="samples")
    assert found is not None
    np.testing.assert_allclose(found.apart, 0, atol=1e-6)


def test_modules_of_one_run_alone_are_not_measured() -> None:
    found = ratio(
        made("a", {"m": [1, 2], "x": [1, 2]}), made("b", {"m": [1, 1], "y": [3, 3]}), "norm"
    )
    assert found is not None
    assert found.modules == ("m", "x")
    np.testing.assert_allclose(found.apart[0], [0, np.log10(2)], rtol=1e-6)
    assert np.isnan(found.apart[1]).all()
    assert found.state.tolist() == [[MEASURED] * 2, [UNMEASURED] * 2]


def test_what_is_measured_more_rarely_stands_until_it_is_measured_again() -> None:
    this = made("a", {"m": np.full(40, 3.0)})
    found = ratio(this, made("b", {"m": [1.0] * 4}, steps=range(0, 40, 10)), "norm")
    assert found is not None
    np.testing.assert_allclose(found.apart[0, :31], np.log10(3), rtol=1e-6)
    assert np.isnan(found.apart[0, 31:]).all()


def test_a_window_has_the_columns_of_the_heat_map_in_it() -> None:
    values = np.exp(np.sin(np.arange(400.0)))
    this, other = made("a", {"m": values}), made("b", {"m": np.ones(900)})
    found = ratio(this, other, "norm", window=(100, 179), n_columns=20)
    heat = HeatGrid("norm", 20, (100, 179))
    heat.read_new(this)
    grid = heat.grid(["m"])
    assert found is not None
    assert grid is not None
    assert (found.first, found.last) == (grid.first, grid.last)
    np.testing.assert_allclose(found.apart, np.log10(grid.mean), atol=1e-6)


def test_without_a_value_there_is_no_map() -> None:
    assert ratio(made("a", logged={"loss": [1.0]}), made("b", {"m": [1.0]}), "norm") is None


def test_the_quantity_may_be_missing_in_the_other_run() -> None:
    found = ratio(made("a", {"m": [1.0]}), made("b", logged={"loss": [1.0]}), "norm")
    assert found is not None
    assert found.state.tolist() == [[UNMEASURED]]


def test_what_is_not_finite_is_infinitely_far_and_marked() -> None:
    this, other = made("a", {"m": [1, np.nan, np.inf]}), made("b", {"m": [1, 2, np.nan]})
    found = ratio(this, other, "norm")
    assert found is not None
    assert found.apart[0].tolist() == [0, np.inf, 0]
    assert found.state[0].tolist() == [MEASURED, LOST, LOST]


def test_signed_values_are_differences_in_spreads_of_the_other_run() -> None:
    a, b = np.array([1.0, -2.0, 4.0, 0.0]), np.array([-1.0, 1.0, -1.0, 1.0])
    found = ratio(made("a", {"m": a, "n": a}), made("b", {"m": b, "n": b * 0 + 2}), "norm")
    assert found is not None
    assert found.is_signed
    assert found.limit == 3.0
    np.testing.assert_allclose(found.apart[0], (a - b) / b.std())
    whole = np.concatenate([b, b * 0 + 2]).std()  # n is the same at every step
    np.testing.assert_allclose(found.apart[1], (a - 2) / whole, rtol=1e-6)


def test_a_single_zero_is_cut_and_makes_no_difference_of_a_ratio() -> None:
    values = np.ones(40)
    found = ratio(made("a", {"m": np.append(values, 0)}), made("b", {"m": np.ones(41)}), "norm")
    assert found is not None
    assert not found.is_signed
    assert found.apart[0][-1] == -np.inf
    assert found.state[0][-1] == MEASURED


def test_of_a_group_the_mean_of_logarithms_is_taken() -> None:
    seeds = [made(str(i), {"m": [value]}) for i, value in enumerate((1.0, 4.0, 16.0))]
    found = ratio(made("a", {"m": [8.0]}), seeds, "norm")
    assert found is not None
    np.testing.assert_allclose(found.apart, [[np.log10(2)]], rtol=1e-6)


def test_a_map_follows_runs_that_grow() -> None:
    a, b = made("a", {"m": [1.0, 1.0]}), made("b", {"m": [1.0]})
    grid = RatioGrid(a, [b], "norm")
    for n in range(2, 40):
        a.given[0].append([n], norm=[[10.0]])
        if n % 3 == 0:
            b.given[0].append(range(b.given[0].n_rows, n + 1), norm=1.0)
        grid.read_new()
        whole, now = ratio(a, b, "norm"), grid.grid()
        assert whole is not None
        assert now is not None
        np.testing.assert_array_equal(now.apart, whole.apart)


@LAW
@given(st.lists(st.one_of(st.just(np.nan), st.floats(-9, 9)), max_size=40), st.integers(1, 12))
def test_smoothing_is_a_running_median_of_what_is_there(values: list[float], rows: int) -> None:
    got = smoothed(np.array([values]), rows)[0]
    half = rows // 2
    for place, value in enumerate(values):
        around = values[max(0, place - half) : place + half + 1]
        wanted = np.nan if np.isnan(value) else np.nanmedian(around)
        np.testing.assert_allclose(got[place], wanted)


def test_a_ratio_stands_until_this_run_is_measured_again_and_compares_values_of_one_step() -> None:
    """This run is measured at every 8th step, the other at every step; both fall."""
    steps = np.arange(0, 64, 8)
    falling = np.exp(-np.arange(70) / 10)
    this = made("a", {"m": 3 * falling[steps]}, steps=steps.tolist(), logged={"loss": np.ones(70)})
    found = ratio(this, made("b", {"m": falling}), "norm")
    assert found is not None
    assert (found.first, found.end) == (0, 69)
    np.testing.assert_allclose(found.apart, np.log10(3), rtol=1e-5)
    np.testing.assert_array_equal(found.measured[0], np.repeat(steps, [8] * 7 + [14]))
    assert (found.state == MEASURED).all()
