"""The public covariance and its eigenvalues, against numpy in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import QuantityError, UnreadableError


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rows_of(tensor: Tensor, axis: int) -> Any:
    return np.moveaxis(tensor.double().numpy(), axis, -1).reshape(-1, tensor.shape[axis])


@given(st.integers(2, 40), st.integers(1, 12), st.floats(-100, 100))
def test_covariance_is_that_of_numpy(n_rows: int, width: int, shift: float) -> None:
    rows = normal(n_rows, width) + shift
    found = nbp.covariance(rows)
    assert found.dtype is torch.float64
    wanted = np.cov(rows.double().numpy(), rowvar=False).reshape(width, width)
    assert found.numpy() == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("module", "shape", "axis"),
    [
        (None, (6, 4), 1),
        (None, (6, 5, 4), 2),
        (nn.Conv2d(4, 8, 1), (3, 4, 5, 5), 1),
        (nn.Linear(4, 8), (3, 5, 2, 4), -1),
        (nn.BatchNorm1d(4), (3, 4, 7), 1),
        (nn.Conv2d(4, 8, 1), (4, 5, 5), 0),
    ],
)
def test_the_channels_are_where_the_module_has_them(
    module: nn.Module | None, shape: tuple[int, ...], axis: int
) -> None:
    tensor = normal(*shape)
    wanted = np.cov(rows_of(tensor, axis), rowvar=False)
    assert nbp.covariance(tensor, module).numpy() == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n_rows", [3, 30])
def test_eigenvalues_of_a_covariance_are_those_of_numpy_descending(n_rows: int) -> None:
    rows = normal(n_rows, 8)
    matrix = nbp.covariance(rows)
    before = matrix.clone()
    found = nbp.cov_eigs(matrix).numpy()
    wanted = np.linalg.eigvalsh(np.cov(rows.double().numpy(), rowvar=False))[::-1]
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert (np.diff(found) <= 0).all()
    assert (found >= 0).all(), "no rounding below zero"
    assert torch.equal(matrix, before)


def test_eigenvalues_of_a_float32_covariance_have_no_rounding_below_zero() -> None:
    rows = normal(4, 16)
    found = nbp.cov_eigs(torch.cov(rows.T))
    assert int((found > 0).sum()) == 3
    assert float(found.min()) == 0.0


def test_gradients_modes_and_kinds_of_numbers_are_taken_as_they_come() -> None:
    rows = normal(6, 3)
    wanted = nbp.covariance(rows)
    assert not nbp.covariance(rows.requires_grad_()).requires_grad
    assert torch.equal(
        nbp.covariance((rows * 8).int() * 1), nbp.covariance((rows * 8).int().float())
    )
    with torch.inference_mode():
        assert torch.allclose(nbp.covariance(rows.detach().clone()), wanted)


def test_what_has_no_covariance_is_missing() -> None:
    assert nbp.covariance(normal(1, 3)).isnan().all()
    assert nbp.covariance(torch.zeros(0, 3)).shape == (3, 3)
    assert nbp.cov_eigs(nbp.covariance(normal(1, 3))).isnan().all()
    broken = normal(5, 3)
    broken[2, 0] = math.nan
    assert nbp.cov_eigs(nbp.covariance(broken)).isnan().all()
    assert nbp.cov_eigs(torch.zeros(0, 0)).shape == (0,)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (torch.zeros(2, 3), r"cov_eigs\(\(2, 3\)\): a square matrix"),
        (torch.zeros(3), r"cov_eigs\(\(3,\)\)"),
        ([[1.0]], r"cov_eigs\(list\)"),
        (torch.tensor([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
    ],
)
def test_what_is_no_covariance_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(QuantityError, match=said):
        nbp.cov_eigs(wrong)


def test_what_has_no_channels_is_refused() -> None:
    with pytest.raises(UnreadableError, match="indices"):
        nbp.covariance(torch.zeros(3, 2, dtype=torch.int64))
    with pytest.raises(QuantityError, match=r"covariance\(list\): a tensor"):
        nbp.covariance([1.0])  # type: ignore[arg-type]
