"""Inner products and eigenvalues of symmetric matrices, by the fastest way that is exact enough."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["eigvalsh", "inner"]


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
