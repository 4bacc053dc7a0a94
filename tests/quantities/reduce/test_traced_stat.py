"""Sums as graphs compute them are those of numpy in float64, and as exact as those of hooks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from notebook_probe.quantities.catalogue.per_channel import channels
from notebook_probe.quantities.reduce.device_stat import one_row
from notebook_probe.quantities.reduce.measure import measure
from notebook_probe.quantities.reduce.reductions import Traced, measuring
from notebook_probe.quantities.reduce.traced_stat import stat_of_numbers, stat_of_sums, traced_sums

ALL = frozenset({"sumsq", "moments", "zeros", "nonfinite", "largest"})


def traced(tensor: Tensor) -> Any:
    return stat_of_sums(traced_sums(tensor, ALL), tensor.numel(), ALL)


def seeded(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


TENSORS = {
    "images": seeded(3, 4, 5, 6),
    "images in channels-last order": seeded(3, 4, 5, 6).to(memory_format=torch.channels_last),
    "transposed": seeded(7, 9).T,
    "a number": torch.tensor(-2.5),
    "a large mean and a small deviation": 1e6 + seeded(50_000),
    "an outlier at the beginning": torch.cat([torch.tensor([1e12]), seeded(4_999)]),
    "very large": 1e30 * seeded(1_000),
    "very small": 1e-30 * seeded(1_000),
    "half precision": seeded(1_000).half(),
    "bfloat16": (300 + seeded(1_000)).bfloat16(),
    "float64": 1e9 + seeded(1_000).double(),
    "whole numbers": torch.arange(-5, 1_000),
    "bools": seeded(1_000) > 0,
    "zeros": torch.zeros(10, 10),
    "all alike": torch.full((1_000,), 0.1),
}


@pytest.mark.parametrize("name", TENSORS)
def test_they_are_those_of_numpy_in_float64(name: str) -> None:
    tensor = TENSORS[name]
    found, array = traced(tensor), tensor.double().numpy().ravel()
    exact: dict[str, Any] = {"rtol": 1e-12, "atol": 0}
    np.testing.assert_allclose(math.sqrt(found.sumsq), np.linalg.norm(array), **exact)
    np.testing.assert_allclose(found.mean, array.mean(), rtol=1e-12, atol=1e-12 * array.std())
    spread = np.square(array - array.mean()).sum()
    np.testing.assert_allclose(found.spread, spread, rtol=1e-9, atol=1e-20 * found.sumsq)
    assert found.n_zero == (array == 0).sum()
    assert found.largest == np.abs(array).max()
    assert found.n_nonfinite == 0


def test_complex_numbers_count_by_their_moduli() -> None:
    found = traced(torch.tensor([3 + 4j, 0j]))
    assert (found.sumsq, found.mean, found.n_zero, found.largest) == (
        pytest.approx(25),
        2.5,
        1,
        5,
    )


@pytest.mark.parametrize("place", [0, 700])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_spreads_as_hooks_let_it_spread(place: int, value: float) -> None:
    tensor = seeded(777)
    tensor[place] = value
    found, wanted = traced(tensor), measure(tensor, ALL)
    assert found.n_nonfinite == wanted.n_nonfinite == 1
    for name in ("sumsq", "mean", "largest"):
        np.testing.assert_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    assert not math.isfinite(found.spread)


def test_the_norm_alone_is_the_same() -> None:
    tensor = seeded(3, 4, 5, 6)
    alone = frozenset({"sumsq"})
    numbers = traced_sums(tensor, alone).tolist()
    assert len(numbers) == 1
    assert stat_of_numbers(numbers, 360, alone).sumsq == pytest.approx(traced(tensor).sumsq)


def test_counts_are_exact_beyond_what_float32_holds() -> None:
    n = 2**24 + 1
    assert traced_sums(torch.zeros(n), frozenset({"zeros"})).tolist() == [0.0, n]


FIELDS = {
    "sumsq": ["sumsq"],
    "moments": ["mean", "spread"],
    "zeros": ["n_zero"],
    "nonfinite": ["n_nonfinite"],
    "largest": ["largest"],
}


@pytest.mark.parametrize("parts", [ALL, frozenset({"sumsq"}), frozenset({"sumsq", "zeros"})])
def test_numbers_that_wait_on_an_accelerator_become_the_same(parts: frozenset[str]) -> None:
    """On the host they are treated as what was copied from one."""
    one, other = 5 + seeded(3, 4), seeded(50)
    rows = [one_row(traced_sums(tensor, parts), tensor.numel(), parts) for tensor in (one, other)]
    joined = torch.cat([one.flatten(), other])
    found, wanted = rows[0].merge(rows[1]), measure(joined, parts)
    assert float(found.sumsq) == pytest.approx(wanted.sumsq)
    here = found.mapped(lambda sums: sums)
    assert here.n == wanted.n
    for name in (name for part in parts for name in FIELDS[part]):
        expected = pytest.approx(getattr(wanted, name), rel=1e-6)
        assert getattr(here, name) == expected, name


CONV, HEAD = nn.Conv2d(4, 4, 1), nn.Linear(6, 6)
CASES = {
    "images": (seeded(3, 4, 5, 6), CONV),
    "images in channels-last order": (
        seeded(3, 4, 5, 6).to(memory_format=torch.channels_last),
        CONV,
    ),
    "rows": (seeded(50, 6), HEAD),
    "large means": (1e6 + seeded(50, 6), HEAD),
    "a sequence": (seeded(3, 5, 6), HEAD),
    "one sample": (seeded(6), HEAD),
    "half precision": (seeded(50, 6).half(), HEAD),
    "infinite": (torch.tensor([[math.inf, 1.0], [2.0, 3.0]]), nn.Linear(2, 2)),
    "both infinite": (torch.tensor([[math.inf, 1.0], [-math.inf, 3.0]]), nn.Linear(2, 2)),
    "no number": (torch.tensor([[1.0, 1.0], [math.nan, 3.0]]), nn.Linear(2, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_channels_are_those_that_hooks_find(name: str) -> None:
    tensor, module = CASES[name]
    wanted = channels(tensor, module)
    way = measuring("channels").traced
    assert isinstance(way, Traced)
    found = way.state(way.sums(tensor, module, frozenset()).flatten(), tensor.numel(), frozenset())
    assert found.n_rows == wanted.n_rows
    torch.testing.assert_close(found.mean, wanted.mean, rtol=1e-12, atol=1e-12, equal_nan=True)
    torch.testing.assert_close(found.squares, wanted.squares, rtol=1e-9, atol=1e-12, equal_nan=True)
