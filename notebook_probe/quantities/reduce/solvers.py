"""Inner products and eigenvalues of symmetric matrices, by the fastest way that is exact enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from notebook_probe.one_thread import one_thread

__all__ = ["LARGE", "eigvalsh", "inner", "lanczos", "largest_eigenvalue"]

Vector = TypeVar("Vector", Tensor, npt.NDArray[np.float64])

LARGE = 256
"""Side of a matrix from which Lanczos steps are cheaper than all eigenvalues."""

CLOSE = 1e-6
"""Residual at which they end; the error is of the order of its square."""

LOOK_EVERY = 10
"""Number of iterations between checks for the end, each of which costs a few iterations."""

LEAST_PRODUCTS, MOST_PRODUCTS = 10, 100
"""A small residual tells that an eigenvalue has been found; that it is the largest takes a few."""

TOLERANCE = 1e-4
"""Residual, in units of the spectral radius; the error is of the order of its square."""

NOTHING = 1e-2
"""Share of that residual which is rounding: there is nothing else to be found."""


def inner(columns: Tensor) -> Tensor:
    """Inner products between columns; numpy sees the symmetry, and does half the work."""
    if not columns.is_cpu:
        return columns.T @ columns
    array = columns.numpy()
    # BLAS threads would compete with torch's, which are busy with the training.
    with one_thread(), np.errstate(all="ignore"):  # what is not finite is found in the result
        return torch.from_numpy(array.T @ array)


def eigvalsh(matrix: Tensor) -> Tensor:
    """Ascending eigenvalues; NaN where the solver gives up. In float64 numpy's is the faster."""
    try:
        if matrix.is_cpu and matrix.dtype is torch.float64:
            with one_thread():
                return torch.from_numpy(np.linalg.eigvalsh(matrix.numpy()))
        return torch.linalg.eigvalsh(matrix)
    except (np.linalg.LinAlgError, torch.linalg.LinAlgError):  # type: ignore[attr-defined]
        return torch.full_like(matrix[0], torch.nan)


def largest_eigenvalue(matrix: Tensor) -> Tensor:
    """Return the largest eigenvalue of a positive semidefinite matrix; NaN if the solver fails.

    Examples
    --------
    >>> largest_eigenvalue(torch.diag(torch.arange(300.0)))
    tensor(299.)
    """
    if matrix.is_cpu and len(matrix) >= LARGE:
        wide, start = matrix.double().numpy(), _start(len(matrix))
        found = lanczos(wide.dot, start, tolerance=CLOSE, every=LOOK_EVERY)
        if not math.isnan(found):
            return matrix.new_tensor(found)
    return eigvalsh(matrix)[-1]


# Cached and seeded: the same matrix gives the same number at every step.
@cache
def _start(n: int) -> npt.NDArray[np.float64]:
    return np.random.default_rng(0).standard_normal(n)


@one_thread()
def lanczos(
    product: Callable[[Vector], Vector],
    start: Vector,
    *,
    tolerance: float = TOLERANCE,
    every: int = 1,
) -> float:
    """Largest eigenvalue of a symmetric matrix by Lanczos' three-term recurrence.

    Without orthogonalizing again: eigenvalues may appear twice, the largest is right all the same
    (Paige 1980), and three vectors are all that is kept.

    Parameters
    ----------
    product : callable
        The matrix times a vector.
    start : Tensor or array, shape (n,)
        Any vector with a part along the eigenvector that is sought.
    tolerance : float
        Residual at which it is found, in units of the spectral radius.
    every : int
        Products between two looks at the residual, which are worth it where products are cheap.

    Returns
    -------
    float
        NaN when 100 products do not find it, and for a matrix that is not finite.

    Examples
    --------
    >>> import torch
    >>> diagonal = torch.tensor([-5.0, 1.0, 3.0])
    >>> round(lanczos(lambda v: diagonal * v, torch.ones(3)), 4)
    3.0
    """
    before, now, beta = 0 * start, start / _norm(start), 0.0
    nothing = NOTHING * tolerance
    diagonal: list[float] = []
    beside: list[float] = []
    for step in range(1, MOST_PRODUCTS + 1):
        following = product(now) - beta * before
        alpha = float(now @ following)
        following -= alpha * now
        beta = _norm(following)
        diagonal.append(alpha)
        if not math.isfinite(alpha + beta):
            return math.nan
        if step % every == 0 or beta <= nothing * abs(alpha):
            values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, -1))
            radius = np.abs(values).max()
            # |beta * last component| is the residual of a Ritz pair, without another product.
            is_settled = beta * abs(vectors[-1, -1]) <= tolerance * radius
            # A negligible beta: the start had no part in any further direction.
            if (is_settled and step >= LEAST_PRODUCTS) or beta <= nothing * radius:
                return float(values[-1])
        beside.append(beta)
        before, now = now, following / beta
    return math.nan


def _norm(vector: Vector) -> float:
    return math.sqrt(float(vector @ vector))
