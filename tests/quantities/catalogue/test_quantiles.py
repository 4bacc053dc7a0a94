"""Quantiles and distances of distributions, of all elements or of some of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.quantities import quantities
from notebook_probe.quantities.catalogue.quantiles import MOST, sample
from tests.models import normal
from tests.quantities.evaluated import evaluate

SHIFT = quantities["distribution_shift"]
MIDDLE = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40),
    st.lists(st.floats(-1e6, 1e6, width=32), max_size=40),
    st.floats(0, 1),
)
def test_quantiles_of_few_elements_are_numpys(
    one: list[float], other: list[float], level: float
) -> None:
    merged = sample(torch.tensor(one)).merge(sample(torch.tensor(other)))
    found = merged.quantiles(np.array([level]))
    want = np.quantile(np.array(one + other), level)
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)


def test_of_many_elements_some_are_drawn_and_told_how_many() -> None:
    many = normal(0, 1000, 500)
    state = torch.get_rng_state()
    found = sample(many)
    assert torch.equal(state, torch.get_rng_state())
    assert (found.n, len(found.values)) == (many.numel(), MOST)
    assert float(evaluate(quantities["n_sampled"], many)) == MOST
    want = np.quantile(many.numpy(), MIDDLE)
    np.testing.assert_allclose(found.quantiles(MIDDLE), want, atol=0.025)
    assert torch.equal(sample(many).values, found.values), "the same places every time"


def test_channels_that_lie_side_by_side_are_all_drawn() -> None:
    channels = torch.arange(64.0).expand(1 << 13, 64)
    found = torch.bincount(sample(channels).values.long(), minlength=64)
    assert found.min() > 0.8 * MOST / 64


@pytest.mark.parametrize("rows", [(200_000, 20_000), (20_000, 200_000), (90_000, 90_000)])
def test_calls_of_unequal_size_count_by_their_size(rows: tuple[int, int]) -> None:
    calls = [normal(i, n) + 3 * i for i, n in enumerate(rows)]
    merged = sample(calls[0]).merge(sample(calls[1]))
    assert merged.n == sum(rows)
    assert len(merged.values) <= MOST
    want = np.quantile(torch.cat(calls).numpy(), MIDDLE)
    np.testing.assert_allclose(merged.quantiles(MIDDLE), want, atol=0.06)


def test_the_shift_is_the_distance_of_wasserstein() -> None:
    before, now = normal(1, 4000), 1.5 * normal(2, 4000) + 0.25
    want = (before.sort().values - now.sort().values).abs().mean()
    assert float(evaluate(SHIFT, before, now)) == pytest.approx(float(want), rel=0.01)
    assert float(evaluate(SHIFT, before, before + 2)) == pytest.approx(2.0, rel=1e-5)


def test_a_step_without_a_call_is_skipped_not_compared() -> None:
    window = SHIFT()
    window.reset()
    window.update(sample(torch.zeros(5)))
    window.reset()
    assert window.compute() is None
    window.reset()
    window.update(sample(torch.ones(5)))
    assert window.compute() == 1.0
