"""Each element lies in the bin between whose edges it is, whichever way it is counted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from notebook_probe.quantities.catalogue import equal_bins
from notebook_probe.quantities.catalogue.equal_bins import BINS, MANY, extremes
from notebook_probe.quantities.catalogue.regular_histograms import param_histogram

WEIGHTS: dict[str, Callable[[torch.Generator, int], Tensor]] = {
    "normal": lambda random, n: torch.randn(n, generator=random),
    "far from 0": lambda random, n: 1000 + torch.randn(n, generator=random),
    "on the edges": lambda random, n: torch.randint(0, 91, (n,), generator=random) / 90,
    "of few values": lambda random, n: torch.randint(-2, 3, (n,), generator=random) * 0.1,
    "with one far away": lambda random, n: torch.cat(
        [torch.randn(n - 1, generator=random), torch.tensor([1e6])]
    ),
    "in half precision": lambda random, n: torch.randn(n, generator=random).bfloat16(),
    "not all finite": lambda random, n: torch.cat(
        [torch.randn(n - 3, generator=random), torch.tensor([torch.nan, torch.inf, -torch.inf])]
    ),
}


def binned(weight: Tensor) -> npt.NDArray[np.float64]:
    """As the quantity gives them."""
    counts: Tensor = param_histogram.function(extremes(weight, wanted=frozenset({BINS})))
    return counts.numpy()


def counted(weight: Tensor) -> npt.NDArray[np.float64]:
    """Bin by bin, by the definition."""
    values = weight.double().numpy()
    values = values[np.isfinite(values)]
    n = len(values)
    n_bins = 0 if n == 0 else 2 if n <= 5 else 3 if n <= 10 else min(n // 10 + 1, 90)
    if n == 0:
        return np.full(90, np.nan)
    low, high = values.min(), values.max()
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    edges = low + np.arange(n_bins + 1) * ((high - low) / n_bins)
    edges[-1] = np.inf
    inside = [(values >= first) & (values < last) for first, last in pairwise(edges)]
    return np.array([one.sum() for one in inside] + [np.nan] * (90 - n_bins))


@pytest.mark.parametrize("n", [100, MANY, MANY + 1, 5 * MANY + 7])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_every_element_is_between_the_edges_of_its_bin(
    kind: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equal_bins, "PIECE", 2 * MANY)
    weight = WEIGHTS[kind](torch.Generator().manual_seed(n), n)
    np.testing.assert_array_equal(binned(weight), counted(weight))


SCALES = st.sampled_from([1e-42, 1e-35, 1e-6, 1.0, 1e9, 1e30, 3e37])
OTHERS = st.lists(st.sampled_from([torch.nan, torch.inf, -torch.inf, 0.0]), max_size=5)


@settings(max_examples=60, deadline=None)
@given(
    n=st.sampled_from([0, 1, 5, 6, 11, 300, MANY + 9]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16]),
    scale=SCALES,
    centre=SCALES | st.just(0.0),
    others=OTHERS,
    seed=st.integers(0, 2**31),
)
def test_whatever_the_elements_are_each_finite_one_is_in_its_bin(
    n: int, dtype: torch.dtype, scale: float, centre: float, others: list[float], seed: int
) -> None:
    weight = torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weight = torch.cat([weight * scale + centre, torch.tensor(others)]).to(dtype)
    np.testing.assert_array_equal(binned(weight), counted(weight))


def test_numpys_own_errors_do_not_keep_a_histogram_from_being_made() -> None:
    weight = torch.cat([torch.randn(2 * MANY) * 1e20, torch.tensor([1e-40, 0.0])])
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(binned(weight), counted(weight))
