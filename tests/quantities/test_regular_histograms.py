"""Each element lies in the bin between whose edges it is, whichever way it is counted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from notebook_probe.quantities.catalogue import regular_histograms
from notebook_probe.quantities.catalogue.regular_histograms import MANY, param_histogram

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


def counted(weight: Tensor) -> npt.NDArray[np.float64]:
    """Bin by bin, by the definition."""
    values = weight.double().numpy()
    values = values[np.isfinite(values)]
    low, n_bins = values.min(), min(len(values) // 10 + 1, 90)
    edges = low + np.arange(n_bins + 1) * ((values.max() - low) / n_bins)
    edges[-1] = np.inf
    inside = [(values >= first) & (values < last) for first, last in pairwise(edges)]
    return np.array([one.sum() for one in inside] + [np.nan] * (90 - n_bins))


@pytest.mark.parametrize("n", [100, MANY, MANY + 1, 5 * MANY + 7])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_every_element_is_between_the_edges_of_its_bin(
    kind: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regular_histograms, "PIECE", 2 * MANY)
    weight = WEIGHTS[kind](torch.Generator().manual_seed(n), n)
    np.testing.assert_array_equal(param_histogram.function(weight), counted(weight))
