"""Laws that every quantity made of tensors obeys, whatever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from notebook_probe.quantities.reduce.features import CALL
from tests.models import normal
from tests.quantities.evaluated import evaluate
from tests.quantities.test_unusual import QUANTITIES, module_for

LAWS = settings(max_examples=6, deadline=None)
SEEDS = st.integers(0, 2**31 - 1)
ROWS, COLUMNS = st.integers(3, 12), st.just(4)


def value(name: str, *tensors: Tensor) -> Any:
    return evaluate(QUANTITIES[name], *tensors, module=module_for(name))


def alike(found: Any, want: Any, name: str, rtol: float = 1e-4) -> None:
    assert (found is None) == (want is None), name
    if want is not None:
        np.testing.assert_allclose(found, want, rtol=rtol, atol=1e-6, err_msg=name)


@pytest.mark.slow
@LAWS
@given(SEEDS, ROWS, COLUMNS)
def test_the_order_of_the_samples_does_not_matter(seed: int, rows: int, columns: int) -> None:
    steps = normal(seed, rows, columns), normal(seed + 1, rows, columns)
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    for name in QUANTITIES:
        alike(value(name, *(x[order] for x in steps)), value(name, *steps), name)


@pytest.mark.slow
@LAWS
@given(SEEDS, ROWS, st.integers(1, 5), COLUMNS)
def test_two_calls_are_one_with_all_samples(seed: int, rows: int, more: int, columns: int) -> None:
    one, other = normal(seed, rows, columns), 3 * normal(seed + 1, more, columns)
    for name, quantity in QUANTITIES.items():
        if quantity.pools and not quantity.is_window and set(quantity.needs) <= CALL.keys():
            alike(value(name, one, other), value(name, torch.cat([one, other])), name)


SHARES = ("_fraction", "_share", "saturation", "sign_flips", "confidence")


@LAWS
@given(SEEDS, ROWS, COLUMNS)
def test_a_share_is_one(seed: int, rows: int, columns: int) -> None:
    steps = normal(seed, rows, columns), normal(seed + 1, rows, columns)
    for name in QUANTITIES:
        found = value(name, *steps) if name.endswith(SHARES) else None
        assert found is None or 0 <= found <= 1 or np.isnan(found), (name, found)


DEGREES: dict[int, tuple[str, ...]] = {
    0: (
        *("_fraction", "_share", "_rank", "_ratio", "_cosine", "_rotation", "_flips", "saturation"),
        *("input_cov_condition", "weight_alpha", "n_sampled", "channel_kurtosis"),
    ),
    1: (
        *("_norm", "_rms", "_abs_max", "_mean", "_std", "_quantiles", "_singular_values", "_sum"),
        *("_min", "_max", "distribution_shift", "distance_from_init"),
    ),
    2: ("_eig", "_eigs", "_eigs_20", "_eigs_50", "_eigs_80"),
}
"""By which power of the scale a quantity grows, by the end of its name."""


def degree(name: str) -> int | None:
    """The one whose ending is the longest; None for one that has none."""
    fitting = [(len(end), n) for n, ends in DEGREES.items() for end in ends if name.endswith(end)]
    return max(fitting)[1] if fitting else None


ABSOLUTE = {"underflow_fraction", "grad_underflow_fraction", "output_grad_underflow_fraction"}
ABSOLUTE |= {"saturated_fraction", "grad_below_eps_fraction", "update_ratio"}
"""These measure against something that does not scale along."""


@pytest.mark.slow
@LAWS
@given(SEEDS, ROWS, COLUMNS, st.sampled_from([0.25, 8.0, 1e4]))
def test_everything_scales_as_it_should(seed: int, rows: int, columns: int, by: float) -> None:
    steps = normal(seed, rows, columns), normal(seed + 1, rows, columns)
    for name in QUANTITIES:
        power = degree(name)
        if power is None or name.startswith("bn_") or name in ABSOLUTE:
            continue
        want = value(name, *steps)
        found = value(name, *(by * x for x in steps))
        alike(found, want if want is None else want * by**power, name)


@pytest.mark.parametrize("name", ["effective_rank", "participation_ratio", "input_cov_stable_rank"])
@LAWS
@given(seed=SEEDS, rows=ROWS, columns=st.integers(2, 6))
def test_a_number_of_directions_is_at_most_that_of_the_channels(
    name: str, seed: int, rows: int, columns: int
) -> None:
    found = float(value(name, normal(seed, rows, columns)))
    assert 1 - 1e-6 <= found <= min(rows, columns) * (1 + 1e-5)
