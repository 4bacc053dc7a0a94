"""Eigenvalues of input covariances against a singular value decomposition in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from notebook_probe.errors import QuantityError, UnreadableError
from notebook_probe.quantities import Quantity, as_quantity, samples, spectra
from notebook_probe.quantities.samples import channel_axis
from notebook_probe.quantities.spectra import Spectrum, spectrum

Doubles = npt.NDArray[np.float64]
LAW = settings(deadline=None, derandomize=True)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def expected(rows: Any) -> Doubles:
    """All eigenvalues of the covariance of ``rows``, descending."""
    wide = np.asarray(rows, np.float64)
    centred = wide - wide.mean(0)
    singular = np.linalg.svd(centred, compute_uv=False)
    out = np.zeros(wide.shape[1])
    out[: len(singular)] = singular**2 / (len(wide) - 1)
    return out


def eigenvalues(tensor: Tensor, module: nn.Module | None = None) -> Doubles:
    found = spectrum(tensor, module).eigenvalues
    assert found.dtype is torch.float64
    return found.numpy()


def close(found: Doubles, rows: Any) -> None:
    wanted = expected(rows)
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12 * wanted[0])
    assert (np.diff(found) <= 0).all()


@pytest.mark.parametrize(
    "shape", [(2, 1), (3, 3), (4, 3), (3, 4), (2, 50), (50, 2), (128, 100), (100, 128), (700, 3)]
)
def test_the_eigenvalues_are_those_of_the_covariance(shape: tuple[int, int]) -> None:
    rows = normal(*shape) @ torch.diag(torch.logspace(0, -3, shape[1])) + 5
    close(eigenvalues(rows), rows)


@LAW
@given(
    n=st.integers(1, 12),
    cuts=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    seed=st.integers(0, 99),
)
def test_calls_count_as_one_with_all_their_rows(n: int, cuts: list[int], seed: int) -> None:
    calls = [normal(rows, n, seed=seed + i) * (i + 1) + 100 * i for i, rows in enumerate(cuts)]
    states = [spectrum(call) for call in calls]
    pooled = states[0]
    for state in states[1:]:
        pooled = pooled.merge(state)
    assert pooled.n_rows == sum(cuts)
    if sum(cuts) < 2:
        assert pooled.eigenvalues.isnan().all()
    else:
        close(pooled.eigenvalues.numpy(), torch.cat(calls))


def test_looking_at_the_eigenvalues_does_not_end_the_pooling() -> None:
    one, other = normal(3, 5), normal(4, 5, seed=1)
    state = spectrum(one)
    close(state.eigenvalues.numpy(), one)
    close(state.merge(spectrum(other)).eigenvalues.numpy(), torch.cat([one, other]))
    close(state.eigenvalues.numpy(), one)


@LAW
@given(scale=st.sampled_from([1e-30, 1e-3, 7.0, 1e15]), seed=st.integers(0, 9), wide=st.booleans())
def test_scaling_scales_and_order_and_shift_do_not_matter(
    scale: float, seed: int, wide: bool
) -> None:
    rows = normal(*((6, 9) if wide else (9, 6)), seed=seed)
    found = eigenvalues(rows)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    channels = torch.randperm(rows.shape[1], generator=torch.Generator().manual_seed(seed))
    assert eigenvalues(rows[order][:, channels]) == pytest.approx(found, rel=1e-9, abs=1e-12)
    assert eigenvalues(rows.double() + 3) == pytest.approx(found, rel=1e-9, abs=1e-12)
    scaled = rows.double() * scale
    assert eigenvalues(scaled) == pytest.approx(found * scale**2, rel=1e-9, abs=1e-12 * scale**2)


def test_small_eigenvalues_are_not_lost_beside_large_ones() -> None:
    rows = normal(500, 4) * torch.tensor([1e3, 1.0, 1e-1, 1e-3])
    found = eigenvalues(rows)
    assert found == pytest.approx(expected(rows), rel=1e-3)
    assert found[0] / found[3] > 1e11


@pytest.mark.parametrize("scale", [1e-150, 1e-25, 1e-12, 1e-6, 1.0, 1e10, 1e18, 1e150])
@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
def test_the_largest_is_right_at_any_scale(scale: float, shape: tuple[int, int]) -> None:
    rows = normal(*shape).double() * scale
    state, wanted = spectrum(rows), expected(rows)
    assert value("input_cov_max_eig", state) == pytest.approx(wanted[0], rel=2e-6)
    rank = wanted.sum() / wanted[0]
    assert value("input_cov_stable_rank", state) == pytest.approx(rank, rel=2e-6)


def test_a_large_mean_does_not_drown_the_eigenvalues() -> None:
    rows = (1000 + 0.01 * normal(300, 6).double()).float()
    assert eigenvalues(rows) == pytest.approx(expected(rows), rel=1e-6)


# ---------------------------------------------------------------- where the channels are


def moved(tensor: Tensor, axis: int) -> Tensor:
    """Rows and channels by the definition: the axis last, the rest flattened."""
    return torch.stack([tensor.select(axis, c).flatten() for c in range(tensor.shape[axis])], dim=1)


CASES: list[tuple[nn.Module, tuple[int, ...], int]] = [
    (nn.Linear(5, 2), (7, 5), 1),
    (nn.Linear(5, 2), (3, 4, 5), 2),
    (nn.Linear(5, 2), (2, 3, 4, 5), 3),
    (nn.Conv1d(4, 2, 1), (3, 4, 6), 1),
    (nn.Conv1d(4, 2, 1), (4, 6), 0),
    (nn.Conv2d(4, 2, 1), (3, 4, 5, 6), 1),
    (nn.Conv2d(4, 2, 1), (4, 5, 6), 0),
    (nn.ConvTranspose2d(4, 2, 1), (3, 4, 5, 6), 1),
    (nn.Conv3d(4, 2, 1), (2, 4, 3, 2, 5), 1),
    (nn.Conv3d(4, 2, 1), (4, 3, 2, 5), 0),
    (nn.InstanceNorm1d(4), (4, 6), 0),
    (nn.InstanceNorm2d(4), (3, 4, 5, 6), 1),
    (nn.BatchNorm1d(4), (9, 4), 1),
    (nn.BatchNorm1d(4), (3, 4, 6), 1),
    (nn.BatchNorm2d(4), (3, 4, 5, 6), 1),
    (nn.GroupNorm(2, 4), (3, 4, 6), 1),
    (nn.GroupNorm(2, 4), (3, 4, 5, 6), 1),
    (nn.LayerNorm(6), (3, 4, 5, 6), 3),
    (nn.RMSNorm(6), (3, 5, 6), 2),
    (nn.LSTM(6, 2), (3, 5, 6), 2),
    (nn.GRUCell(6, 2), (5, 6), 1),
    (nn.MultiheadAttention(6, 2), (3, 5, 6), 2),
    (nn.Embedding(9, 6), (3, 5, 6), 2),
    (nn.ReLU(), (5, 6), 1),
    (nn.ReLU(), (3, 5, 6), 2),
    (nn.ReLU(), (3, 4, 5, 6), 1),
    (nn.Sequential(nn.ReLU()), (3, 4, 5, 6), 1),
]


@pytest.mark.parametrize(
    ("module", "shape", "axis"), CASES, ids=lambda case: str(case).split("(")[0]
)
def test_the_channel_axis_is_that_of_the_module(
    module: nn.Module, shape: tuple[int, ...], axis: int
) -> None:
    tensor = normal(*shape) * torch.arange(1.0, shape[-1] + 1)
    assert channel_axis(module, len(shape)) == axis
    close(eigenvalues(tensor, module), moved(tensor, axis))


def test_a_subclass_is_treated_as_its_base() -> None:
    class Mine(nn.Conv2d):
        pass

    assert channel_axis(Mine(4, 2, 1), 3) == channel_axis(nn.LazyConv2d(2, 1), 3) == 0


@pytest.mark.parametrize("n_dims", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("module", [None, nn.Conv3d(1, 1, 1), nn.BatchNorm2d(1), nn.ReLU()])
def test_a_tensor_of_any_dimension_has_a_channel_axis(
    module: nn.Module | None, n_dims: int
) -> None:
    assert 0 <= channel_axis(module, n_dims) < n_dims


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "channels last": lambda images: images.contiguous(memory_format=torch.channels_last),
    "strided": lambda images: images.repeat_interleave(2, -1)[..., ::2],
    "expanded": lambda images: images[:, :1].expand_as(images),
    "permuted": lambda images: images.permute(2, 3, 0, 1).contiguous().permute(2, 3, 0, 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("block", [1, 40, 1 << 17])
def test_the_layout_in_memory_and_the_blocks_do_not_matter(
    layout: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "BLOCK", block)
    images = LAYOUTS[layout](normal(9, 3, 5, 4))
    close(eigenvalues(images, nn.Conv2d(3, 1, 1)), moved(images, 1))
    tokens = images.movedim(1, -1)
    close(eigenvalues(tokens, nn.Linear(3, 1)), moved(images, 1))


# ---------------------------------------------------------------- what cannot be measured


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("shape", [(6, 3), (3, 6)])
def test_whatever_is_not_finite_makes_it_missing(broken: float, shape: tuple[int, int]) -> None:
    rows = normal(*shape)
    rows[1, 2] = broken
    pooled = spectrum(rows).merge(spectrum(normal(9, shape[1])))
    for found in (spectrum(rows), pooled):
        assert found.eigenvalues.isnan().all()
        assert all(math.isnan(value(name, found)) for name in NAMES)


@pytest.mark.parametrize("shape", [(), (5,), (1, 5), (0, 5), (5, 0), (1, 0)])
def test_fewer_than_two_rows_are_missing(shape: tuple[int, ...]) -> None:
    found = spectrum(torch.ones(shape))
    assert all(math.isnan(value(name, found)) for name in NAMES)


def test_an_empty_call_changes_nothing() -> None:
    rows = normal(5, 3)
    for nothing in (spectrum(torch.empty(0, 3)), spectrum(torch.empty(4, 0))):
        close(nothing.merge(spectrum(rows)).eigenvalues.numpy(), rows)
        close(spectrum(rows).merge(nothing).eigenvalues.numpy(), rows)


def test_a_solver_that_gives_up_leaves_it_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_convergence(matrix: Any) -> None:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigvalsh", no_convergence)
    for shape in ((5, 3), (3, 5)):
        assert spectrum(normal(*shape)).eigenvalues.isnan().all()


def test_calls_with_other_channels_have_no_common_covariance() -> None:
    with pytest.raises(QuantityError, match="calls with 3 and with 4 channels"):
        spectrum(normal(5, 3)).merge(spectrum(normal(5, 4)))


KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "float16": Tensor.half,
    "bfloat16": Tensor.bfloat16,
    "float64": Tensor.double,
    "int64": lambda rows: (10 * rows).long(),
    "uint8": lambda rows: (10 * rows).abs().to(torch.uint8),
    "sparse": lambda rows: (rows * (rows > 0)).to_sparse(),
    "within a graph": lambda rows: rows.clone().requires_grad_() * 2,
    "parameter": nn.Parameter,
    "conjugate": lambda rows: torch.complex(rows, rows.flip(0)).conj(),
    "negative": lambda rows: torch._neg_view(rows),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(9, 4), (4, 9)])
def test_every_kind_of_tensor_is_measured(kind: str, shape: tuple[int, int]) -> None:
    rows = KINDS[kind](normal(*shape))
    dense = rows.detach().to_dense() if rows.is_sparse else rows.detach()
    wanted = dense.abs() if dense.is_complex() else dense
    close(eigenvalues(rows), wanted.double().numpy())


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_the_parts_of_a_nested_tensor_are_rows(layout: torch.layout) -> None:
    parts = [normal(3, 2), normal(5, 2, seed=1)]
    nested = torch.nested.nested_tensor(parts, layout=layout)
    close(eigenvalues(nested, nn.Linear(2, 2)), torch.cat(parts))


def test_a_tensor_without_values_says_so() -> None:
    with pytest.raises(UnreadableError, match="on meta holds no values"):
        spectrum(torch.empty(3, 2, device="meta"))


def test_measuring_leaves_random_numbers_elements_and_graphs_alone() -> None:
    for shape in ((9, 4), (4, 9)):
        rows = normal(*shape).double().requires_grad_()
        kept, state = rows.detach().clone(), torch.get_rng_state()
        assert not spectrum(rows).eigenvalues.requires_grad
        assert torch.equal(rows, kept)
        assert torch.equal(torch.get_rng_state(), state)


def test_a_tensor_that_is_written_over_afterwards_has_been_measured() -> None:
    for shape in ((9, 4), (4, 9)):
        rows = normal(*shape).double()
        kept, state = rows.clone(), spectrum(rows)
        rows.zero_()
        close(state.eigenvalues.numpy(), kept)


# ---------------------------------------------------------------- the quantities

NAMES = (
    "input_cov_max_eig",
    "input_cov_stable_rank",
    "input_cov_condition",
    "input_cov_condition_20",
    "input_cov_condition_50",
    "input_cov_condition_80",
    "input_cov_condition_100",
)


def value(name: str, state: Spectrum) -> float:
    return float(as_quantity(name)(state))


@pytest.mark.parametrize("shape", [(200, 30), (60, 61), (20, 30), (50, 1)])
def test_the_quantities_are_what_they_say(shape: tuple[int, int]) -> None:
    rows = normal(*shape) @ torch.diag(torch.logspace(0, -2, shape[1]))
    state, wanted = spectrum(rows), expected(rows)
    n, singular = shape[1], shape[0] <= shape[1]
    assert value("input_cov_max_eig", state) == pytest.approx(wanted[0], rel=2e-6)
    rank = wanted.sum() / wanted[0]
    assert value("input_cov_stable_rank", state) == pytest.approx(rank, rel=2e-6)
    condition = math.inf if singular else wanted[0] / wanted[-1]
    assert value("input_cov_condition", state) == pytest.approx(condition, rel=1e-6)
    for percent in (20, 50, 80):
        ratio = wanted[0] / (wanted[n * percent // 100] + 1e-7)
        found = value(f"input_cov_condition_{percent}", state)
        assert found == pytest.approx(ratio, rel=1e-6)
    last = 0.0 if singular else wanted[-1]
    found = value("input_cov_condition_100", state)
    assert found == pytest.approx(wanted[0] / (last + 1e-7), rel=1e-6)


def test_a_case_made_by_hand() -> None:
    """Variances 8, 2 and 0 along three directions, in 5 rows."""
    rows = torch.tensor([[4.0, 0, 1], [-4, 0, 1], [0, 2, 1], [0, -2, 1], [0, 0, 1]])
    state = spectrum(rows)
    assert state.eigenvalues.tolist() == pytest.approx([8.0, 2.0, 0.0])
    assert value("input_cov_max_eig", state) == pytest.approx(8)
    assert value("input_cov_stable_rank", state) == pytest.approx(1.25)
    assert value("input_cov_condition", state) == math.inf
    assert value("input_cov_condition_100", state) == pytest.approx(8e7)
    assert value("input_cov_condition_50", state) == pytest.approx(4)


@pytest.mark.parametrize("rows", [40, 4])
def test_channels_that_say_the_same_make_it_singular(rows: int) -> None:
    one = normal(rows, 3)
    state = spectrum(torch.cat([one, one, 0.3 * one], dim=1))
    assert value("input_cov_condition", state) == math.inf
    assert state.eigenvalues.tolist()[3:] == [0.0] * 6


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (4, 4), (333, 4), (333, 400)])
@pytest.mark.parametrize("constant", [0.0, 0.1, -3e10])
def test_a_constant_input_has_no_rank(shape: tuple[int, int], constant: float) -> None:
    state = spectrum(torch.full(shape, constant))
    assert value("input_cov_max_eig", state) == 0
    assert math.isnan(value("input_cov_stable_rank", state))
    assert value("input_cov_condition", state) == math.inf
    assert value("input_cov_condition_100", state) == 0


@pytest.mark.parametrize(
    ("shape", "dtypes"),
    [((9, 4), [torch.float64]), ((4, 9), [torch.float32]), ((4, 4), [torch.float64])],
)
def test_quantities_of_a_step_share_one_decomposition(
    shape: tuple[int, int], dtypes: list[torch.dtype], monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[Tensor] = []
    solve = spectra._eigvalsh

    def spied(matrix: Tensor) -> Tensor:
        solved.append(matrix)
        return solve(matrix)

    monkeypatch.setattr(spectra, "_eigvalsh", spied)
    state = spectrum(normal(*shape))
    assert solved == []
    for name in (*NAMES[:3], NAMES[-1]):
        value(name, state)
    assert [matrix.dtype for matrix in solved] == dtypes
    for name in NAMES:
        value(name, state)
    assert len(solved) == len({*dtypes, torch.float64})
    assert {matrix.shape for matrix in solved} == {(4, 4)}


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("InputCovMaxEig", "input_cov_max_eig"),
        ("InputCovStableRank", "input_cov_stable_rank"),
        ("InputCovCondition", "input_cov_condition_100"),
        ("InputCovCondition20", "input_cov_condition_20"),
        ("InputCovCondition50", "input_cov_condition_50"),
        ("InputCovCondition80", "input_cov_condition_80"),
    ],
)
def test_taiyis_names_are_aliases(alias: str, name: str) -> None:
    assert as_quantity(alias) is as_quantity(name)


def test_they_say_what_they_are() -> None:
    quantities: Sequence[Quantity] = [as_quantity(name) for name in NAMES]
    assert all(quantity.summary and quantity.source for quantity in quantities)
    assert all(quantity.needs == ("input",) for quantity in quantities)
