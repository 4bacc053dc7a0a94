"""The average against its definition in float64, and against a loop over a million values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.record.views.thinning.average import Average, warm_up

VALUES = st.floats(-1e6, 1e6, width=32) | st.sampled_from([np.nan, np.inf, -np.inf])


def at_each(values: np.ndarray, weight: float) -> np.ndarray:
    """The definition, for a few values: a weighted mean of the finite ones so far."""
    found = np.full(len(values), np.nan)
    for k in range(len(values)):
        so_far = values[: k + 1][np.isfinite(values[: k + 1])]
        if np.isfinite(values[k]):
            found[k] = np.average(so_far, weights=weight ** np.arange(len(so_far))[::-1])
    return found


@given(
    st.lists(VALUES, max_size=300),
    st.lists(st.integers(0, 300), max_size=4),
    st.sampled_from([0.0, 0.5, 0.9, 0.99, 0.999]),
)
def test_it_is_the_weighted_mean_of_the_finite_values_so_far_whatever_the_pieces(
    values: list[float], cuts: list[int], weight: float
) -> None:
    array = np.array(values, np.float32)[:, None]
    average = Average(weight)
    edges = sorted({0, len(values), *(cut % (len(values) + 1) for cut in cuts)})
    found = [average.follow(array[a:b]) for a, b in pairwise(edges)]
    expected = at_each(array[:, 0].astype(np.float64), weight)
    np.testing.assert_allclose(
        np.concatenate([np.empty((0, 1)), *found])[:, 0], expected, rtol=1e-9, atol=1e-6
    )


@pytest.mark.parametrize("weight", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("log", [False, True])
def test_a_million_values_are_averaged_as_by_a_loop(weight: float, log: bool) -> None:
    values = np.random.default_rng(0).lognormal(size=1_000_000)
    values[500_000:500_003] = 1e6
    found = Average(weight, log=log).follow(values[:, None])[:, 0]
    total = mass = 0.0
    expected = np.empty(len(values))
    for place, value in enumerate((np.log10(values) if log else values).tolist()):
        total, mass = weight * total + value, weight * mass + 1
        expected[place] = total / mass
    np.testing.assert_allclose(found, 10**expected if log else expected, rtol=1e-11)


def test_series_are_averaged_together_as_each_alone() -> None:
    values = np.random.default_rng(1).normal(size=(1000, 5))
    values[300:400, 1], values[:700, 2], values[:, 3] = np.nan, np.nan, np.inf
    together = Average(0.99, n_series=5)
    found = np.concatenate([together.follow(values[:450]), together.follow(values[450:])])
    for one in range(5):
        alone = Average(0.99).follow(values[:, one : one + 1])
        np.testing.assert_allclose(found[:, one], alone[:, 0], rtol=1e-12)


def test_what_a_logarithm_has_no_place_for_is_left_out() -> None:
    found = Average(0.5, log=True).follow(np.array([[10.0], [0.0], [-3.0], [1000.0]]))
    assert np.isnan(found[1:3]).all()
    assert found[3, 0] == pytest.approx(10 ** ((0.5 * 1 + 3) / 1.5))


@pytest.mark.parametrize("weight", [0.5, 0.9, 0.99, 0.999])
def test_what_lies_before_the_warm_up_does_not_count(weight: float) -> None:
    n = warm_up(weight)
    values = np.ones((n + 1, 1))
    values[0] = 1e6
    assert Average(weight).follow(values)[-1, 0] - 1 <= 1e6 * 1e-9


@pytest.mark.parametrize("weight", [-0.1, 1.0])
def test_a_weight_of_one_is_none(weight: float) -> None:
    with pytest.raises(ValueError, match="from 0 up to but not including 1"):
        Average(weight)
