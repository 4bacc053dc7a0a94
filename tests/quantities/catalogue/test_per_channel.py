"""Channels of which something is infinite, beside numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from notebook_probe.quantities.catalogue.per_channel import (
    channels,
    output_channel_mean,
    output_channel_norm,
    output_channel_rms,
    output_channel_std,
)
from tests.models import normal

INF, NAN = float("inf"), float("nan")


def with_odd_channels() -> Tensor:
    """Five rows; of six channels one is whole, and five have something that is no number."""
    values = normal(0, 5, 6)
    values[1, 1], values[2, 2], values[0, 3] = INF, -INF, NAN
    values[0, 4], values[3, 4] = INF, -INF
    values[0, 5], values[3, 5] = INF, NAN
    return values


def pooled(values: Tensor, n_calls: int) -> object:
    found = [channels(part.clone(), nn.Linear(6, 6)) for part in values.tensor_split(n_calls)]
    total = found[0]
    for one in found[1:]:
        total = total.merge(one)
    return total


@pytest.mark.parametrize("n_calls", [1, 2, 3, 5])
def test_a_channel_with_an_infinity_is_infinite_and_one_with_a_nan_is_nan(n_calls: int) -> None:
    values = with_odd_channels()
    found, oracle = pooled(values, n_calls), values.double().numpy()
    squares = np.square(oracle)
    assert np.isposinf(squares.mean(0)[[1, 2, 4]]).all()
    np.testing.assert_allclose(output_channel_rms(found), np.sqrt(squares.mean(0)), rtol=1e-6)
    np.testing.assert_allclose(output_channel_norm(found), np.sqrt(squares.sum(0)), rtol=1e-6)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(output_channel_mean(found), oracle.mean(0), rtol=1e-5)
        wanted = oracle.std(0, ddof=1)
    np.testing.assert_allclose(output_channel_std(found), wanted, rtol=1e-5)


@pytest.mark.parametrize("n_calls", [1, 2, 5])
def test_finite_channels_are_as_before(n_calls: int) -> None:
    values = normal(1, 5, 6) * 1e3 + 1e4
    found, oracle = pooled(values, n_calls), values.double().numpy()
    rms = np.sqrt(np.square(oracle).mean(0))
    np.testing.assert_allclose(output_channel_rms(found), rms, rtol=1e-12)
    np.testing.assert_allclose(output_channel_std(found), oracle.std(0, ddof=1), rtol=1e-9)


def test_a_channel_of_no_row_is_missing() -> None:
    found = channels(torch.empty(0, 6), nn.Linear(6, 6))
    assert output_channel_rms(found).isnan().all()
