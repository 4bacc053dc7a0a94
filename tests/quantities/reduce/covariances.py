"""Eigenvalues of a covariance by a singular value decomposition in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.reduce.spectrum import Spectrum, spectrum

Doubles = npt.NDArray[np.float64]


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
