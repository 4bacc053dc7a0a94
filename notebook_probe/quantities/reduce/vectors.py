"""Lengths of tensors seen as vectors, and angles between them, in float64 where it matters.

>>> round(cosine(torch.tensor([1.0, 0.0]), torch.tensor([[1.0], [1.0]]).T).item(), 6)
0.707107
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from notebook_probe.quantities.reduce.arrays import Floats, dense
from notebook_probe.quantities.reduce.measure import ROW, SMALLEST

__all__ = ["cosine", "dot", "length"]


def dot(one: Tensor, other: Tensor) -> Tensor:
    """Sum of the products of two real tensors of one size, 0-d and in float64.

    On a CPU rows of float32 are multiplied in float32 and their sums added in float64; where
    products leave the range of float32 all is done again in float64, as it is elsewhere.
    """
    first, second = dense(one), dense(other)
    if first is not None and second is not None and one.stride() == other.stride():
        found = _by_rows(first, second)
        if SMALLEST < abs(found) < math.inf:
            return torch.tensor(found, dtype=torch.float64)
    return one.double().flatten().dot(other.double().flatten())


def _by_rows(one: Floats, other: Floats) -> float:
    whole = one.size - one.size % ROW
    with np.errstate(all="ignore"):
        rows = np.vecdot(one[:whole].reshape(-1, ROW), other[:whole].reshape(-1, ROW))
        return float(rows.sum(dtype=np.float64)) + float(np.vdot(one[whole:], other[whole:]))


def length(tensor: Tensor) -> Tensor:
    """Root of the sum of squares of a real tensor."""
    return dot(tensor, tensor).sqrt()


def cosine(one: Tensor, other: Tensor) -> Tensor:
    """Of the angle between two real tensors of one size; NaN where one is all zero."""
    return dot(one, other) / (length(one) * length(other))
