"""The largest eigenvalue of a matrix that is known by its products alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

__all__ = ["largest_eigenvalue"]

Vector = TypeVar("Vector", Tensor, npt.NDArray[np.float64])

LEAST_PRODUCTS, MOST_PRODUCTS = 10, 100
"""A small residual tells that an eigenvalue has been found; that it is the largest takes a few."""

TOLERANCE = 1e-4
"""Residual, in units of the spectral radius; the error is of the order of its square."""

NOTHING = 1e-2
"""Share of that residual which is rounding: there is nothing else to be found."""


def largest_eigenvalue(
    product: Callable[[Vector], Vector],
    start: Vector,
    *,
    tolerance: float = TOLERANCE,
    every: int = 1,
) -> float:
    """Largest eigenvalue of a symmetric matrix by Lanczos' three-term recurrence.

    Without orthogonalising anew: eigenvalues may appear twice, the largest is right all the same
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
    >>> round(largest_eigenvalue(lambda v: diagonal * v, torch.ones(3)), 4)
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
            is_settled = beta * abs(vectors[-1, -1]) <= tolerance * radius
            if (is_settled and step >= LEAST_PRODUCTS) or beta <= nothing * radius:
                return float(values[-1])
        beside.append(beta)
        before, now = now, following / beta
    return math.nan


def _norm(vector: Vector) -> float:
    return math.sqrt(float(vector @ vector))
