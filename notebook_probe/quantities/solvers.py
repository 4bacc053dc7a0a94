"""Inner products and eigenvalues of symmetric matrices, by the fastest way that is exact enough."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["LARGE", "eigvalsh", "inner", "largest_eigenvalue"]

LARGE = 256
"""Side of a matrix from which Lanczos steps are cheaper than all eigenvalues."""

STEPS = 96
CLOSE = 1e-9
"""Relative error at which they end."""


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
        found = _lanczos(matrix.double().numpy())
        if found is not None:
            return torch.tensor(found, dtype=matrix.dtype)
    return eigvalsh(matrix)[-1]


def _lanczos(matrix: npt.NDArray[np.float64]) -> float | None:
    """The largest eigenvalue, None where it is not known well enough after `STEPS`."""
    basis = np.zeros((STEPS + 1, len(matrix)))
    diagonal, beside = np.zeros(STEPS), np.zeros(STEPS)
    start = np.random.default_rng(0).standard_normal(len(matrix))
    basis[0] = start / np.linalg.norm(start)
    for step in range(STEPS):
        product = matrix @ basis[step]
        diagonal[step] = product @ basis[step]
        known = basis[: step + 1]
        for _ in range(2):  # after one pass copies of what was found come back
            product -= known.T @ (known @ product)
        beside[step] = np.linalg.norm(product)
        if step % 8 == 7 or not beside[step]:
            small = np.diag(diagonal[: step + 1]) + np.diag(beside[:step], -1)  # its lower half
            values, vectors = np.linalg.eigh(small)
            residual, gap = beside[step] * vectors[-1, -1], values[-1] - values[-2:-1].sum()
            if residual**2 <= CLOSE * values[-1] * gap:  # Kato and Temple
                return float(values[-1])
        if not beside[step]:
            return None
        basis[step + 1] = product / beside[step]
    return None
