"""Inner products and eigenvalues of symmetric matrices, by the fastest way that is exact enough."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from notebook_probe.quantities.reduce import lanczos

__all__ = ["LARGE", "eigvalsh", "inner", "largest_eigenvalue"]

LARGE = 256
"""Side of a matrix from which Lanczos steps are cheaper than all eigenvalues."""

CLOSE = 1e-6
"""Residual at which they end; the error is of the order of its square."""

LOOK_EVERY = 10
"""To see whether they have ended takes as long as a few of them."""


def inner(columns: Tensor) -> Tensor:
    """Inner products between columns; numpy sees the symmetry, and does half the work."""
    if not columns.is_cpu:
        return columns.T @ columns
    array = columns.numpy()
    with np.errstate(all="ignore"):  # what is not finite is found in the result
        return torch.from_numpy(array.T @ array)


def eigvalsh(matrix: Tensor) -> Tensor:
    """Ascending eigenvalues; NaN where the solver gives up. In float64 numpy's is the faster."""
    try:
        if matrix.is_cpu and matrix.dtype is torch.float64:
            return torch.from_numpy(np.linalg.eigvalsh(matrix.numpy()))
        return torch.linalg.eigvalsh(matrix)
    except (np.linalg.LinAlgError, torch.linalg.LinAlgError):  # type: ignore[attr-defined]
        return torch.full_like(matrix[0], torch.nan)


def largest_eigenvalue(matrix: Tensor) -> Tensor:
    """Of a symmetric matrix without negative eigenvalues; NaN where the solver gives up.

    Examples
    --------
    >>> largest_eigenvalue(torch.diag(torch.arange(300.0)))
    tensor(299.)
    """
    if matrix.is_cpu and len(matrix) >= LARGE:
        wide, start = matrix.double().numpy(), _start(len(matrix))
        found = lanczos.largest_eigenvalue(wide.dot, start, tolerance=CLOSE, every=LOOK_EVERY)
        if not math.isnan(found):
            return matrix.new_tensor(found)
    return eigvalsh(matrix)[-1]


@cache
def _start(n: int) -> npt.NDArray[np.float64]:
    return np.random.default_rng(0).standard_normal(n)
