"""Eigenvalues of input covariances against a singular value decomposition in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from notebook_probe.errors import QuantityError, UnreadableError
from notebook_probe.quantities.reduce import spectrum as spectrum_module
from notebook_probe.quantities.reduce.spectrum import spectrum
from tests.quantities.reduce.covariances import NAMES, close, eigenvalues, expected, normal, value


@pytest.mark.parametrize(
    "shape", [(2, 1), (3, 3), (4, 3), (3, 4), (2, 50), (50, 2), (128, 100), (100, 128), (700, 3)]
)
def test_the_eigenvalues_are_those_of_the_covariance(shape: tuple[int, int]) -> None:
    rows = normal(*shape) @ torch.diag(torch.logspace(0, -3, shape[1])) + 5
    close(eigenvalues(rows), rows)


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


@pytest.mark.slow
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
    "int32": lambda rows: (10 * rows).int(),
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


def test_the_largest_comes_from_all_where_all_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solved: list[str] = []

    def counting(name: str) -> Callable[[Tensor], Tensor]:
        solve = getattr(spectrum_module, name)

        def counted(matrix: Tensor) -> Tensor:
            solved.append(name)
            return solve(matrix)

        return counted

    for name in ("eigvalsh", "largest_eigenvalue"):
        monkeypatch.setattr(spectrum_module, name, counting(name))
    rows = normal(600, 300)
    layer = nn.Linear(300, 3)
    alone = spectrum(rows, layer, frozenset({"leading"})).leading[0]
    assert solved == ["largest_eigenvalue"]
    solved.clear()
    both = spectrum(rows, layer, frozenset({"leading", "spectrum"}))
    assert both.merge(spectrum(rows[:0], layer)).leading[0] == both.eigenvalues[0]
    assert solved == ["eigvalsh"]
    np.testing.assert_allclose(alone, both.eigenvalues[0], rtol=1e-8)
