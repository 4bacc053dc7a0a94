"""Histograms in powers of four against numpy's, with the documented edges, element for element."""

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
from notebook_probe.quantities.catalogue import log_histograms
from notebook_probe.quantities.catalogue.log_histograms import BINS, log_histogram

EDGES = [0.0, *(2.0 ** (2 * k - 45) for k in range(1, 31)), math.inf]
"""Of the magnitude classes, as documented."""

anything = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=0, max_dims=3, max_side=9, min_side=0),
    elements=st.floats(width=32) | st.sampled_from([*EDGES, -(2.0**-25), 0.0, -0.0, 1e-45, -1e-45]),
)
LAW = settings(deadline=None, derandomize=True)


def expected(values: Any) -> list[int]:
    """The counts of float64 ``values``, by numpy."""
    wide = np.asarray(values, np.float64).ravel()
    finite = wide[np.isfinite(wide)]
    above, _ = np.histogram(finite[finite > 0], EDGES)
    below, _ = np.histogram(-finite[finite < 0], EDGES)
    n_zero, n_nonfinite = int((finite == 0).sum()), wide.size - finite.size
    return [*below[::-1].tolist(), n_zero, *above.tolist(), n_nonfinite]


def counts(tensor: Tensor) -> list[int]:
    found = log_histogram(tensor).counts
    assert (found.shape, found.dtype) == ((64,), torch.int64)
    return [int(count) for count in found]


@LAW
@given(values=anything)
def test_every_element_is_counted_where_it_belongs(values: np.ndarray[Any, Any]) -> None:
    found = counts(torch.from_numpy(np.array(values)))
    assert found == expected(values)
    assert sum(found[:63]) == np.isfinite(values).sum()


@pytest.mark.slow
@LAW
@given(values=anything, others=anything)
def test_histograms_of_parts_add_up(
    values: np.ndarray[Any, Any], others: np.ndarray[Any, Any]
) -> None:
    one, other = (log_histogram(torch.from_numpy(np.array(each))) for each in (values, others))
    together = np.concatenate([values.ravel(), others.ravel()])
    assert one.merge(other).counts.tolist() == expected(together)


@pytest.mark.slow
@LAW
@given(values=anything, seed=st.integers(0, 9))
def test_order_does_not_matter_and_negation_mirrors(
    values: np.ndarray[Any, Any], seed: int
) -> None:
    tensor = torch.from_numpy(np.array(values)).flatten()
    found = counts(tensor)
    order = torch.randperm(tensor.numel(), generator=torch.Generator().manual_seed(seed))
    assert counts(tensor[order]) == found
    assert counts(-tensor) == [*found[62::-1], found[63]]


@LAW
@given(values=hnp.arrays(np.float32, 20, elements=st.floats(2.0**-40, 2.0**10, width=32)))
def test_four_times_as_large_is_one_bin_further(values: np.ndarray[Any, Any]) -> None:
    found = counts(torch.from_numpy(values))
    assert counts(torch.from_numpy(4 * values)) == [0, *found[:63]]
    assert counts(torch.from_numpy(-4 * values)) == [*found[61::-1], 0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_edge_belongs_to_the_class_it_begins(dtype: torch.dtype, sign: int) -> None:
    edges = torch.tensor(EDGES[1:-1], dtype=dtype)
    below = torch.nextafter(edges, torch.zeros_like(edges))
    for k, (edge, less) in enumerate(zip(edges, below, strict=True), start=1):
        assert counts(sign * edge)[31 + sign * (1 + k)] == 1
        assert counts(sign * less)[31 + sign * k] == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_ends_of_a_types_range_are_finite_and_not_zero(dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)
    smallest = info.smallest_normal * info.eps
    ends = torch.tensor([info.max, info.min, smallest, -smallest, 0.0, -0.0], dtype=dtype)
    broken = torch.tensor([math.inf, -math.inf, math.nan, -math.nan], dtype=dtype)
    found = counts(torch.cat([ends, broken]))
    assert found == expected(torch.cat([ends, broken]).double())
    assert (found[31], found[63]) == (2, 4)
    assert (sum(found[:31]), sum(found[32:63])) == (2, 2)


def test_a_nan_of_any_bits_is_a_nan() -> None:
    bits = torch.tensor([0x7F800001, 0x7FFFFFFF, -1, -0x7FFFFF], dtype=torch.int32)
    assert torch.isnan(bits.view(torch.float32)).all()
    assert counts(bits.view(torch.float32))[63] == 4


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


KINDS: dict[str, Callable[[], Tensor]] = {
    "float16": lambda: normal(5000, dtype=torch.float16) * 1e-4,
    "bfloat16": lambda: normal(5000, dtype=torch.bfloat16) * 1e20,
    "float64": lambda: normal(5000).double() * 1e200,
    "float64 that float32 would round over an edge": lambda: torch.tensor(
        [2.0 - 1e-12, 0.5 - 1e-15, -8.0 + 1e-14], dtype=torch.float64
    ),
    "float8": lambda: normal(500).to(torch.float8_e4m3fn),
    "int64": lambda: torch.tensor([0, 1, -1, 2**63 - 1, -(2**63), 2**31 - 1, 2**15 - 1, 2**15]),
    "int8": lambda: torch.arange(-128, 128, dtype=torch.int8),
    "uint8": lambda: torch.arange(0, 255, dtype=torch.uint8),
    "bool": lambda: torch.tensor([True, False, True]),
    "constant": lambda: torch.full((1000,), 0.3),
    "empty": lambda: torch.empty(0, 3),
    "0-d": lambda: torch.tensor(3.0),
    "expanded": lambda: normal(5, 1).expand(5, 7),
    "strided": lambda: normal(6, 8)[::2, 1::3],
    "transposed": lambda: normal(6, 8).T,
    "channels last": lambda: normal(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "negative view": lambda: torch._neg_view(normal(50).abs()),
    "parameter": lambda: torch.nn.Parameter(normal(4, 4)),
    "within a graph": lambda: normal(4).requires_grad_() * 2,
    "more than a chunk": lambda: normal(log_histograms.CHUNK + 1),
    "a chunk": lambda: normal(log_histograms.CHUNK),
    "pairs and one": lambda: normal(log_histograms.PAIRED + 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tensor_is_counted(kind: str) -> None:
    tensor = KINDS[kind]()
    assert counts(tensor) == expected(tensor.detach().double().numpy())


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", [torch.complex32, torch.complex64, torch.complex128])
def test_complex_numbers_count_by_their_modulus(dtype: torch.dtype) -> None:
    values = torch.tensor([3 + 4j, 0j, -5 - 12j, 3e4 + 4e4j]).to(dtype)
    assert counts(values) == expected(np.abs(values.to(torch.complex128).numpy()))


def test_a_finite_complex_number_does_not_overflow() -> None:
    found = counts(torch.tensor([3e38 + 3e38j]))
    assert (found[62], found[63]) == (1, 0)


SPARSE: dict[str, Callable[[Tensor], Tensor]] = {
    "coo": Tensor.to_sparse,
    "csr": Tensor.to_sparse_csr,
    "csc": Tensor.to_sparse_csc,
    "bsr": lambda dense: dense.to_sparse_bsr((2, 2)),
    "coo, hybrid": lambda dense: dense.to_sparse(1),
}


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta")
def test_what_a_sparse_tensor_leaves_out_is_zero(layout: str) -> None:
    dense = normal(6, 8) * (normal(6, 8) > 0.5)
    dense[:2] = 0
    assert counts(SPARSE[layout](dense)) == expected(dense.numpy())


def test_what_a_sparse_tensor_holds_twice_is_added_first() -> None:
    twice = torch.sparse_coo_tensor(
        torch.tensor([[1, 1, 3]]), torch.tensor([1.0, 2.0, -4.0]), (6,), check_invariants=True
    )
    assert counts(twice) == expected([0, 3, 0, -4, 0, 0])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_the_parts_of_a_nested_tensor_are_counted(layout: torch.layout) -> None:
    rows = [normal(3, 2), normal(5, 2) * 100]
    nested = torch.nested.nested_tensor(rows, layout=layout)
    assert counts(nested) == expected(torch.cat(rows).numpy())


def test_of_a_sharded_tensor_this_shard_is_counted() -> None:
    class Sharded(Tensor):
        def to_local(self) -> Tensor:
            return self.as_subclass(Tensor)[:3]

    shards = normal(8).as_subclass(Sharded)
    assert counts(shards) == expected(shards.to_local().numpy())


def test_a_tensor_without_values_says_so() -> None:
    with pytest.raises(UnreadableError, match="on meta holds no values"):
        log_histogram(torch.empty(3, device="meta"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_dense_tensors_are_not_copied(dtype: torch.dtype) -> None:
    tensor = normal(2, 3, 4, 5, dtype=dtype).to(memory_format=torch.channels_last)
    assert log_histograms._flat(tensor).data_ptr() == tensor.data_ptr()
    assert log_histograms._floats(tensor).data_ptr() == tensor.data_ptr()


@pytest.mark.slow
@LAW
@given(values=anything, wide=st.booleans())
def test_counting_on_a_device_gives_the_same(values: np.ndarray[Any, Any], wide: bool) -> None:
    """The same operations, on the CPU."""
    tensor = torch.from_numpy(np.array(values)).flatten()
    tensor = tensor.double() if wide else tensor
    form = log_histograms._FORMATS[tensor.dtype]
    found = log_histograms._counts_on_device(tensor.view(form.bits), form)
    assert found.tolist() == expected(values)


def test_counting_leaves_random_numbers_elements_and_graphs_alone() -> None:
    values = normal(1000).requires_grad_()
    kept, state = values.detach().clone(), torch.get_rng_state()
    assert not log_histogram(values).counts.requires_grad
    assert torch.equal(values, kept)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_default_device_and_deterministic_mode_change_nothing() -> None:
    values = normal(1000)
    wanted = counts(values)
    torch.use_deterministic_algorithms(True)
    torch.set_default_device("meta")
    try:
        found = log_histogram(values).counts
    finally:
        torch.set_default_device(None)
        torch.use_deterministic_algorithms(False)
    assert found.tolist() == wanted


def test_the_bins_lie_side_by_side_and_hold_their_middle() -> None:
    assert BINS.size == 64
    lower, upper, middle = (BINS.coords[name] for name in ("bin_lo", "bin_hi", "bin"))
    assert lower[32:63] == tuple(EDGES[:-1])
    assert upper[32:63] == tuple(EDGES[1:])
    assert lower[1:63] == upper[:62]
    assert middle == tuple(sorted(middle))
    for place in range(63):
        found = counts(torch.tensor(middle[place]))
        assert found[place] == 1
    assert counts(torch.tensor(middle[63]))[63] == 1
    assert math.isnan(lower[63])
    assert math.isnan(upper[63])


def test_numbers_that_vanish_in_half_precision_are_told_by_an_edge() -> None:
    inside = torch.tensor(2.0**-25)  # halfway: rounds to even, which is zero
    outside = torch.nextafter(inside, torch.tensor(1.0))
    assert (inside.half().item(), outside.half().item()) == (0.0, 2.0**-24)
    assert 2.0**-25 in BINS.coords["bin_lo"]
