"""Several runs as one: counted and averaged place by place by numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.compare import group
from notebook_probe.compare.band import T_99, band_of, noise_of
from notebook_probe.errors import UnknownNameError
from tests.compare.made import made
from tests.record.build import LAW

LOSSES = st.lists(st.floats(-8, 8, width=16), min_size=1, max_size=30)


@pytest.mark.slow
@LAW
@given(st.lists(LOSSES, min_size=1, max_size=5))
def test_at_every_step_the_runs_that_are_there_count(losses: list[list[float]]) -> None:
    longest = max(map(len, losses))
    band = group([made("r", logged={"loss": one}) for one in losses], "", "loss", n_points=longest)
    np.testing.assert_allclose(band.x, np.arange(longest))
    for step in range(longest):
        there = [one[step] for one in losses if step < len(one)]
        assert band.n[step] == len(there)
        np.testing.assert_allclose(band.mean[step], np.mean(there), atol=1e-9)
        assert (band.low[step], band.high[step]) == (min(there), max(there))
        if len(there) > 1:
            np.testing.assert_allclose(band.std[step], np.std(there, ddof=1), atol=1e-9)
        else:
            assert np.isnan(band.std[step])


def test_in_fewer_places_each_is_the_mean_of_the_rows_nearest_to_it() -> None:
    loss = np.arange(9.0) ** 2
    band = group([made("r", logged={"loss": loss})], "", "loss", n_points=3)
    assert band.x.tolist() == [0, 4, 8]
    np.testing.assert_allclose(band.mean, [loss[:3].mean(), loss[3:7].mean(), loss[7:].mean()])


def test_between_two_rows_a_run_is_between_them() -> None:
    runs = [made("a", logged={"loss": [0.0, 4.0]}, logged_steps=[0, 4])]
    runs.append(made("b", logged={"loss": np.zeros(5)}))
    assert group(runs, "", "loss", n_points=5).mean.tolist() == [0, 0.5, 1, 1.5, 2]


def test_runs_of_another_pace_are_put_together_by_samples() -> None:
    slow = made("slow", logged={"loss": np.arange(8.0)}, config={"batch_size": 1})
    fast = made("fast", logged={"loss": 2 * np.arange(4.0) + 1}, config={"batch_size": 2})
    band = group([slow, fast], "", "loss", by="samples", n_points=8)
    assert band.x.tolist() == list(range(8))
    np.testing.assert_allclose(band.mean[:7], np.arange(7) + 0.5)
    assert band.n.tolist() == [2] * 7 + [1]


def test_of_logarithms_the_mean_is_geometric_and_the_spread_a_factor() -> None:
    band = band_of(np.zeros(1), [np.array([1.0]), np.array([100.0]), np.array([-1.0])], log=True)
    np.testing.assert_allclose(band.mean, [10])
    np.testing.assert_allclose(band.std, [np.exp(np.std(np.log([1, 100]), ddof=1))])
    assert (band.low.tolist(), band.high.tolist(), band.n.tolist()) == ([1], [100], [2])


def test_who_lacks_the_series_or_the_axis_is_left_out_by_name() -> None:
    has = made("has", logged={"loss": [1.0, 2.0], "samples": [8, 16]})
    lacks = made("lacks", {"m": [1.0]})
    no_axis = made("digits-cnn-5", logged={"loss": [1.0]})
    band = group([has, lacks, no_axis], "", "loss", by="samples", n_points=2)
    assert band.n.tolist() == [1, 1]
    assert [text.split(";")[0] for text in band.left_out] == [
        "loss of (root) is not recorded in lacks",
        "samples are not recorded in digits-cnn-5",
    ]
    with pytest.raises(UnknownNameError, match=r"samples are not recorded in digits-cnn-5"):
        group([no_axis], "", "loss", by="samples")
    with pytest.raises(UnknownNameError, match="at least one run"):
        group([], "", "loss")


def test_an_average_is_smooth_and_of_each_run_by_itself() -> None:
    noise = np.random.default_rng(0).normal(size=(2, 500))
    runs = [made("r", logged={"loss": 5 + one}) for one in noise]
    rough, smooth = (group(runs, "", "loss", n_points=500, smooth=w) for w in (0.0, 0.95))
    assert smooth.mean[100:].std() < rough.mean.std() / 3
    np.testing.assert_allclose(smooth.mean[100:].mean(), 5, atol=0.1)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 11, 40])
def test_another_seed_of_the_group_lies_in_its_noise_ninety_nine_times_of_a_hundred(n: int) -> None:
    """The interval of a t distribution, of which numpy draws."""
    drawn = np.random.default_rng(n).normal(size=(n + 1, 40_000))
    seeds = drawn[:n] - drawn[:n].mean(axis=0)
    inside = np.abs(drawn[n] - drawn[:n].mean(axis=0)) <= noise_of(seeds)
    assert 0.989 < inside.mean() < 0.998


def test_the_noise_of_one_run_is_none_and_of_any_at_least_its_farthest() -> None:
    assert noise_of(np.zeros((1, 3))).tolist() == [0, 0, 0]
    seeds = np.array([[-1.0]] * 40 + [[40.0]])
    assert noise_of(seeds)[0] == 40.0
    assert len(T_99) == 10
