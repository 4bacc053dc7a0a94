"""Sums on a device are those of the host, whatever the tensor; here the host is the device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.reduce import device_stat as module
from notebook_probe.quantities.reduce.device_stat import (
    NOTHING,
    DeviceStat,
    device_stat,
    device_stats,
    difference_stats,
)
from notebook_probe.quantities.reduce.measure import measure
from notebook_probe.quantities.reduce.stat import Stat

ALL = frozenset({"sumsq", "moments", "zeros", "nonfinite", "largest"})
FIELDS = ("n", "sumsq", "mean", "spread", "n_zero", "n_nonfinite", "largest")


def here(state: Any) -> Stat:
    """What becomes of a state once its sums are on the host."""
    found = state.mapped(lambda sums: sums) if isinstance(state, DeviceStat) else state
    assert isinstance(found, Stat)
    return found


def numbers(stat: Stat) -> list[float]:
    return [getattr(stat, name) for name in FIELDS]


TENSORS = {
    "float32": torch.randn(6, 7, generator=torch.Generator().manual_seed(1)),
    "bfloat16": torch.randn(40, generator=torch.Generator().manual_seed(2)).bfloat16(),
    "float16": torch.randn(5, 4, generator=torch.Generator().manual_seed(3)).half(),
    "float64": torch.randn(9, generator=torch.Generator().manual_seed(4)).double() * 1e100,
    "zeros": torch.tensor([0.0, -0.0, 3.0, 4.0]),
    "constant": torch.full((1000,), 0.1),
    "far from zero": 1000 + 1e-2 * torch.randn(999, generator=torch.Generator().manual_seed(5)),
    "tiny": torch.full((7,), 1e-30),
    "huge": torch.full((7,), 3e38),
    "scalar": torch.tensor(2.5),
    "channels last": torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(6)).to(
        memory_format=torch.channels_last
    ),
    "transposed": torch.arange(12.0).reshape(3, 4).T,
    "strided": torch.arange(20.0)[::3],
    "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 5),
    "integers": torch.arange(-3, 4),
    "booleans": torch.tensor([True, False, True]),
    "complex": torch.tensor([3 + 4j, 0j]),
    "infinite": torch.tensor([1.0, math.inf, 0.0, 2.0]),
    "both infinities": torch.tensor([1.0, math.inf, -math.inf]),
    "nan": torch.tensor([1.0, math.nan, 0.0, -7.0]),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_the_sums_of_a_tensor_are_those_of_the_host(kind: str) -> None:
    want = measure(TENSORS[kind], ALL)
    found = here(device_stat(TENSORS[kind], ALL))
    np.testing.assert_allclose(numbers(found)[:3], numbers(want)[:3], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.spread, want.spread, rtol=2e-4, atol=1e-12)
    np.testing.assert_array_equal(numbers(found)[4:6], numbers(want)[4:6])
    np.testing.assert_allclose(found.largest, want.largest, rtol=1e-12)


def test_moments_are_exact_where_a_large_mean_would_cancel() -> None:
    values = TENSORS["far from zero"]
    found, exact = here(device_stat(values, ALL)), values.double().numpy()
    np.testing.assert_allclose(found.mean, exact.mean(), rtol=1e-14)
    np.testing.assert_allclose(found.spread, np.square(exact - exact.mean()).sum(), rtol=1e-9)


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    parts=st.sets(st.sampled_from(sorted(ALL - {"sumsq"}))),
    seed=st.integers(0, 99),
)
def test_many_are_measured_together_as_one_by_one(
    sizes: list[int], parts: set[str], seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randn(size, generator=generator) for size in sizes]
    wanted = frozenset({"sumsq", *parts})
    for tensor, state in zip(tensors, device_stats(tensors, wanted), strict=True):
        alone = here(device_stat(tensor, wanted))
        np.testing.assert_allclose(numbers(here(state)), numbers(alone), rtol=1e-12, atol=1e-15)


def test_states_of_several_calls_merge_to_that_of_all_and_with_one_of_the_host() -> None:
    first, second, third = (TENSORS["far from zero"], torch.randn(70), torch.randn(40))
    whole = measure(torch.cat([first, second, third]), ALL)
    merged: Any = device_stat(first, ALL)
    for other in (device_stat(second, ALL), measure(third, ALL)):
        merged = merged.merge(other)
    turned: Any = measure(third, ALL)
    for other in (device_stat(first, ALL), device_stat(second, ALL)):
        turned = turned.merge(other)
    for state in (merged, turned):
        np.testing.assert_allclose(numbers(here(state)), numbers(whole), rtol=1e-5)


def test_a_tensor_that_is_written_over_was_read_before() -> None:
    values = torch.ones(8)
    state = device_stat(values, ALL)
    values.fill_(9.0)
    assert here(state).mean == 1.0


def test_rows_of_inference_mode_and_others_lie_in_one_buffer() -> None:
    with torch.inference_mode():
        first: Any = device_stat(torch.ones(17), ALL)
    second: Any = device_stat(torch.full((17,), 3.0), ALL)
    assert first.rows[0].source is second.rows[0].source
    assert (here(first).mean, here(second).mean) == (1.0, 3.0)


def test_nothing_is_nothing_and_what_has_no_values_says_so() -> None:
    assert here(device_stat(torch.empty(0), ALL)) is NOTHING
    assert here(device_stat(torch.empty(0), ALL).merge(device_stat(torch.ones(2), ALL))).n == 2  # type: ignore[arg-type]
    with pytest.raises(UnreadableError):
        device_stat(torch.ones(2, device="meta"), ALL)


def test_sums_that_could_not_be_copied_are_nan_of_as_many_elements() -> None:
    state: Any = device_stat(torch.ones(8), ALL).merge(device_stat(torch.ones(8), ALL))  # type: ignore[arg-type]
    lost = state.mapped(lambda sums: math.nan)
    assert lost.n == 16
    assert all(math.isnan(value) for value in numbers(lost)[1:])


def test_changes_are_measured_in_the_memory_of_the_old_values() -> None:
    news = [torch.randn(5, 4), torch.randn(3)]
    olds = [torch.randn(5, 4), torch.randn(3)]
    want = [measure(new - old, ALL) for new, old in zip(news, olds, strict=True)]
    for state, expected in zip(difference_stats(news, olds, ALL), want, strict=True):
        np.testing.assert_allclose(numbers(here(state)), numbers(expected), rtol=1e-5)


def test_changes_of_narrow_weights_are_not_rounded() -> None:
    old = [torch.tensor([1.0, 100.0]).bfloat16()]
    new = [torch.tensor([300.0, 100.5]).bfloat16()]
    want = float((new[0].float() - old[0].float()).square().sum())
    (state,) = difference_stats(new, old, frozenset({"sumsq"}))
    assert here(state).sumsq == pytest.approx(want, rel=1e-12)


def test_a_tensor_larger_than_a_slab_is_read_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SLAB": 256, "ROW": 64, "SMALL": 32}.items():
        monkeypatch.setattr(module, name, value)
    values: Tensor = torch.randn(777) + 50
    values[700] = math.inf
    state: Any = device_stat(values, ALL)
    assert [rows.stop - rows.start for rows in state.rows] == [4, 4, 4, 1]
    found, want = here(state), measure(values, ALL)
    assert (found.sumsq, found.mean, found.n_nonfinite) == (math.inf, math.inf, 1)
    assert (found.n_zero, found.largest) == (want.n_zero, math.inf)
