"""Histograms in equal bins against numpy's on the edges that are told, element for element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.catalogue import histograms
from notebook_probe.quantities.catalogue.histograms import LINEAR_BINS, Histogram, histogram

anything = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=0, max_dims=3, max_side=9, min_side=0),
    elements=st.floats(width=32)
    | st.floats(-3, 3, width=32)
    | st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -(2.0**-5), 1e-45, -1e-45, 1e38, -1e38]),
)
LAW = settings(deadline=None, derandomize=True)


def expected(values: Any) -> tuple[list[int], float]:
    """Counts and the width of a bin of ``values``, in float64 and by numpy.

    A negative bin holds its lower edge, as a positive one does; numpy's last bin has both.
    """
    wide = np.asarray(values, np.float64).ravel()
    finite = wide[np.isfinite(wide)]
    largest = np.abs(finite).max(initial=0.0)
    e = next((e for e in range(-121, 128) if 2.0**e > largest), 128)
    edges = np.arange(-32, 33) * 2.0 ** (e - 5)
    inner, _ = np.histogram(finite, [-math.inf, *edges[1:-1], math.inf])
    return [*inner.tolist(), wide.size - finite.size], 2.0 ** (e - 5)


def told(found: Histogram) -> tuple[list[int], float]:
    assert (found.counts.shape, found.counts.dtype) == ((65,), torch.int64)
    return found.counts.tolist(), float(found.width)


def of(values: Any) -> tuple[list[int], float]:
    return told(histogram(torch.from_numpy(np.array(values))))


@LAW
@given(values=anything)
def test_every_element_is_counted_where_it_belongs(values: np.ndarray[Any, Any]) -> None:
    assert of(values) == expected(values)
    assert sum(of(values)[0]) == values.size


@pytest.mark.slow
@LAW
@given(values=anything, wide=st.booleans())
def test_counting_on_a_device_gives_the_same(values: np.ndarray[Any, Any], wide: bool) -> None:
    """The same operations, on the CPU."""
    tensor = torch.from_numpy(np.array(values)).flatten()
    tensor = tensor.double() if wide else tensor
    assert told(histograms._on_device(tensor)) == expected(values)


@pytest.mark.slow
@LAW
@given(parts=st.lists(anything, min_size=2, max_size=4))
def test_histograms_of_parts_are_that_of_the_whole_whatever_their_ranges(parts: list[Any]) -> None:
    first, *others = (histogram(torch.from_numpy(np.array(part))) for part in parts)
    for other in others:
        first = first.merge(other)
    assert told(first) == expected(np.concatenate([part.ravel() for part in parts]))


def test_two_narrow_bins_are_one_of_the_next_width() -> None:
    values = normal(4000).clamp(-3.9, 3.9)
    narrow, width = told(histogram(values))
    wide, twice = told(histogram(torch.cat([values, torch.tensor([4.0])])))
    assert (width, twice) == (2.0**-3, 2.0**-2)
    assert wide[16:48] == np.add.reduceat(narrow[:64], range(0, 64, 2)).tolist()
    assert wide[48] == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("power", [-3, 0, 5])
def test_an_edge_belongs_to_the_bin_that_it_begins(dtype: torch.dtype, power: int) -> None:
    edges = torch.arange(-32, 32, dtype=torch.float64).to(dtype) * 2.0**power
    assert expected(edges.double())[1] == 2.0 ** (power + 1), "-32 widths is beyond the first"
    for values in (edges, torch.nextafter(edges, torch.full_like(edges, -torch.inf))):
        assert told(histogram(values)) == expected(values.double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_ends_of_a_types_range_are_counted(dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)
    smallest = info.smallest_normal * info.eps
    ends = torch.tensor([info.max, info.min, smallest, -smallest, 0.0, -0.0], dtype=dtype)
    broken = torch.tensor([math.inf, -math.inf, math.nan, -math.nan], dtype=dtype)
    counts, width = told(histogram(torch.cat([ends, broken])))
    assert counts == expected(torch.cat([ends, broken]).double())[0]
    assert [counts[0], counts[31], counts[32], counts[63], counts[64]] == [1, 1, 3, 1, 4]
    assert told(histogram(ends)) == expected(ends.double())
    assert math.isfinite(width)


def test_what_has_no_size_is_in_the_middle_and_takes_any_other_width() -> None:
    zeros, some = histogram(torch.zeros(5)), histogram(torch.tensor([3.0]))
    assert told(zeros) == ([0] * 32 + [5] + [0] * 32, 2.0**-126)
    assert told(histogram(torch.empty(0))) == ([0] * 65, 2.0**-126)
    assert told(zeros.merge(some)) == told(some.merge(zeros)) == expected([0, 0, 0, 0, 0, 3])


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


KINDS: dict[str, Callable[[], Tensor]] = {
    "float16": lambda: normal(5000, dtype=torch.float16) * 1e-4,
    "bfloat16": lambda: normal(5000, dtype=torch.bfloat16) * 1e20,
    "float64": lambda: normal(5000).double() * 1e-20,
    "float64 beyond float32": lambda: normal(5000).double() * 1e200,
    "float64 that float32 would round over an edge": lambda: torch.tensor(
        [2.0 - 1e-12, 0.5 - 1e-15, -1.0 - 1e-14], dtype=torch.float64
    ),
    "float8": lambda: normal(500).to(torch.float8_e4m3fn),
    "int64": lambda: torch.tensor([0, 1, -1, 2**63 - 1, -(2**63), 2**31 - 1, 2**15 - 1, 2**15]),
    "int8": lambda: torch.arange(-128, 128, dtype=torch.int8),
    "uint8": lambda: torch.arange(0, 255, dtype=torch.uint8),
    "bool": lambda: torch.tensor([True, False, True]),
    "constant": lambda: torch.full((1000,), 0.3),
    "large and vanishingly small": lambda: torch.tensor([1e38, -1e-38, -1e-45, 1e-45, -0.0]),
    "0-d": lambda: torch.tensor(3.0),
    "expanded": lambda: normal(5, 1).expand(5, 7),
    "strided": lambda: normal(6, 8)[::2, 1::3],
    "transposed": lambda: normal(6, 8).T,
    "channels last": lambda: normal(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "negative view": lambda: torch._neg_view(normal(50).abs()),
    "parameter": lambda: torch.nn.Parameter(normal(4, 4)),
    "within a graph": lambda: normal(4).requires_grad_() * 2,
    "a piece and one": lambda: normal(histograms.PIECE + 1) * 100,
    "sparse": lambda: (normal(6, 8) * (normal(6, 8) > 0.5)).to_sparse(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tensor_is_counted(kind: str) -> None:
    tensor = KINDS[kind]()
    dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    assert told(histogram(tensor)) == expected(dense.double().numpy())


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_numbers_count_by_their_modulus(dtype: torch.dtype) -> None:
    values = torch.tensor([3 + 4j, 0j, -5 - 12j, 3e4 + 4e4j]).to(dtype)
    assert told(histogram(values)) == expected(np.abs(values.to(torch.complex128).numpy()))
    assert told(histogram(torch.tensor([3e38 + 3e38j])))[0][63] == 1, "finite"


def test_a_tensor_without_values_says_so() -> None:
    with pytest.raises(UnreadableError, match="on meta holds no values"):
        histogram(torch.empty(3, device="meta"))


def test_counting_leaves_random_numbers_elements_and_graphs_alone() -> None:
    values = normal(1000).requires_grad_()
    kept, state = values.detach().clone(), torch.get_rng_state()
    assert not histogram(values).counts.requires_grad
    assert torch.equal(values, kept)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_default_device_and_deterministic_mode_change_nothing() -> None:
    values = normal(1000)
    values[0] = math.nan
    wanted = expected(values)
    torch.use_deterministic_algorithms(True)
    torch.set_default_device("meta")
    try:
        found = histogram(values)
        found = found.merge(histogram(torch.zeros(0, device="cpu")))
    finally:
        torch.set_default_device(None)
        torch.use_deterministic_algorithms(False)
    assert told(found) == wanted


def test_the_bins_lie_side_by_side_and_the_width_is_told_last() -> None:
    lower, upper, middle = (LINEAR_BINS.coords[f"linear_bin{end}"] for end in ("_lo", "_hi", ""))
    assert lower[1:64] == upper[:63]
    assert (lower[0], lower[32], upper[63]) == (-32, 0, 32)
    assert middle[:64] == tuple((a + b) / 2 for a, b in zip(lower[:64], upper[:64], strict=True))
    assert middle[64] == math.inf
    assert LINEAR_BINS.has_width
    row = histograms.weight_histogram(histogram(torch.tensor([0.3, math.nan])))
    assert (row.numel(), float(row[19 + 32]), float(row[64])) == (LINEAR_BINS.size, 1, 1)
    assert float(row[65]) == 2.0**-6
