"""The sums behind norms and moments, against float64 numpy and the laws of pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor, nn

from notebook_probe.quantities.reduce.measure import measure, measure_changes, measure_difference
from notebook_probe.quantities.reduce.stat import Stat, root

PARTS = frozenset({"sumsq", "moments", "zeros", "nonfinite"})
finite = st.floats(-1e6, 1e6, width=32)
arrays = hnp.arrays(
    np.float32, hnp.array_shapes(max_dims=3, max_side=7, min_side=0), elements=finite
)


def close(found: Any, wanted: float, scale: float = 0.0) -> None:
    assert float(found) == pytest.approx(wanted, rel=1e-5, abs=1e-6 * scale + 1e-12, nan_ok=True)


def check(stat: Stat, values: np.ndarray[Any, Any]) -> None:
    """Every part of a Stat against the definition."""
    wide = values.astype(np.float64).ravel()
    assert stat.n == wide.size
    close(stat.sumsq, float(np.square(wide).sum()))
    assert float(stat.n_zero) == float((wide == 0).sum())
    assert float(stat.n_nonfinite) == float((~np.isfinite(wide)).sum())
    if wide.size:
        scale = float(np.abs(wide).max())
        close(stat.mean, float(wide.mean()), scale)
        close(stat.spread, float(np.square(wide - wide.mean()).sum()), scale**2 * wide.size)


@pytest.mark.slow
@settings(deadline=None)
@given(values=arrays)
def test_every_part_is_what_it_says(values: np.ndarray[Any, Any]) -> None:
    check(measure(torch.from_numpy(values), PARTS), values)


@pytest.mark.slow
@settings(deadline=None)
@given(values=arrays, others=arrays)
def test_pooling_is_measuring_the_concatenation(
    values: np.ndarray[Any, Any], others: np.ndarray[Any, Any]
) -> None:
    one, other = (measure(torch.from_numpy(each), PARTS) for each in (values, others))
    check(one.merge(other), np.concatenate([values.ravel(), others.ravel()]))


@pytest.mark.slow
@settings(deadline=None)
@given(values=arrays)
def test_the_order_of_the_axes_does_not_matter(values: np.ndarray[Any, Any]) -> None:
    backwards = torch.from_numpy(values).permute(*reversed(range(values.ndim)))
    check(measure(backwards, PARTS), values)


@pytest.mark.slow
@settings(deadline=None)
@given(values=arrays, seed=st.integers(0, 9))
def test_a_difference_is_measured_and_leaves_the_new_side_alone(
    values: np.ndarray[Any, Any], seed: int
) -> None:
    old = torch.from_numpy(values)
    new = old + torch.randn(old.shape, generator=torch.Generator().manual_seed(seed))
    before, wanted = new.clone(), (new - old).numpy()
    check(measure_difference(new, old.clone(), PARTS), wanted)
    assert torch.equal(new, before)


@pytest.mark.parametrize("parts", [PARTS, frozenset({"sumsq"})])
def test_many_changes_are_each_what_they_are_alone(parts: frozenset[str]) -> None:
    generator = torch.Generator().manual_seed(0)
    shapes: list[tuple[int, ...]] = [(), (0,), (7,), (3, 5), (80, 80)]
    olds = [torch.randn(shape, generator=generator) for shape in shapes]
    news = [old + 3 + torch.randn(old.shape, generator=generator) for old in olds]
    news[2][1] = olds[2][1]
    wanted = [(new - old).numpy() for new, old in zip(news, olds, strict=True)]
    before, arrays = [new.clone() for new in news], [old.view(-1).numpy() for old in olds]
    stats = measure_changes([nn.Parameter(new) for new in news], olds, arrays, parts)
    for stat, values in zip(stats, wanted, strict=True):
        close(stat.sumsq, float(np.square(values.astype(np.float64)).sum()))
        if "moments" in parts:
            check(stat, values)
    assert all(map(torch.equal, news, before))
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("n", [1, 65_535, 65_536, 65_537, 200_000])
def test_lengths_round_a_chunk_are_all_measured(n: int) -> None:
    values = torch.randn(n, generator=torch.Generator().manual_seed(n))
    check(measure(values, PARTS), values.numpy())
    check(measure_difference(values, torch.zeros(n), PARTS), values.numpy())


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e-23, 1e-19, 1.0, 1e19, 1e25, 1e37])
def test_neither_small_nor_large_squares_are_lost(scale: float) -> None:
    values = torch.linspace(-1, 2, 1000) * scale
    wide = values.double().numpy()
    for stat in (
        measure(values, PARTS),
        measure_difference(values, torch.zeros(1000), PARTS),
    ):
        assert float(root(stat.sumsq)) == pytest.approx(np.linalg.norm(wide), rel=1e-5)
        assert float(stat.mean) == pytest.approx(wide.mean(), rel=1e-4)
        deviation = float(root(stat.spread)) / math.sqrt(999)
        assert deviation == pytest.approx(wide.std(ddof=1), rel=1e-4)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_counted_and_shows(broken: float) -> None:
    values = torch.tensor([1.0, broken, 0.0, broken])
    stat = measure(values, PARTS)
    assert float(stat.n_nonfinite) == 2
    assert float(stat.n_zero) == 1
    assert not math.isfinite(stat.sumsq)
    assert not math.isfinite(stat.mean)


def test_a_large_mean_does_not_drown_the_spread() -> None:
    values = 1000 + 0.01 * torch.randn(10_000)
    stat = measure(values, PARTS)
    wanted = values.double().numpy().std(ddof=1)
    assert math.sqrt(float(stat.spread) / 9_999) == pytest.approx(wanted, rel=1e-3)
    assert float(stat.spread) >= 0


KINDS: dict[str, Tensor] = {
    "float16": torch.randn(50).half() * 100,
    "bfloat16": torch.randn(50).bfloat16() * 1e20,
    "float64": torch.randn(50).double() * 1e150,
    "int64": torch.arange(-5, 50),
    "bool": torch.tensor([True, False, True]),
    "uint8": torch.arange(0, 255, dtype=torch.uint8),
    "expanded": torch.randn(5, 1).expand(5, 7),
    "strided": torch.randn(6, 8)[::2, 1::3],
    "channels last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "0-d": torch.tensor(3.0),
    "parameter": torch.nn.Parameter(torch.randn(4, 4)),
    "needs grad": torch.randn(4, requires_grad=True) * 2,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tensor_is_measured(kind: str) -> None:
    tensor = KINDS[kind].detach()
    check(measure(KINDS[kind], PARTS), tensor.double().numpy())


def test_complex_numbers_count_by_their_modulus() -> None:
    values = torch.tensor([3 + 4j, 0j, -5 + 12j])
    check(measure(values, PARTS), values.abs().numpy())


def test_sparse_tensors_are_coalesced_first() -> None:
    values = torch.sparse_coo_tensor(
        torch.tensor([[1, 1, 3]]), torch.tensor([1.0, 2.0, -4.0]), (6,), check_invariants=True
    )
    check(measure(values, PARTS), np.array([0, 3, 0, -4, 0, 0], np.float32))


def test_an_empty_tensor_measures_nothing() -> None:
    stat = measure(torch.empty(0, 4), PARTS)
    assert (stat.n, float(stat.sumsq)) == (0, 0.0)
    full = measure(torch.ones(3), PARTS)
    assert stat.merge(full) == full
    assert full.merge(stat) == full


def test_measuring_draws_no_random_number_and_changes_no_element() -> None:
    values = torch.randn(1000)
    kept, state = values.clone(), torch.get_rng_state()
    measure(values, PARTS)
    assert torch.equal(values, kept)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_root_of_a_negative_number_is_missing() -> None:
    assert math.isnan(root(-1.0))
    assert root(9.0) == 3.0
