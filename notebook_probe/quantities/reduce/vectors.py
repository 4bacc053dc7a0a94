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
from notebook_probe.quantities.reduce.quiet import quiet

__all__ = ["cosine", "dot", "length"]


def dot(one: Tensor, other: Tensor) -> Tensor:
    """Sum of the products of two real tensors of one size, 0-d and in float64.

    On a CPU rows of float32 are multiplied in float32 and their sums added in float64; where
    products leave the range of float32 all is done again in float64, as it is elsewhere.
    """
    arrays = _arrays(one, other)
    if arrays is None:
        return one.double().flatten().dot(other.double().flatten())
    return torch.tensor(_product(*arrays), dtype=torch.float64)


def length(tensor: Tensor) -> Tensor:
    """Root of the sum of squares of a real tensor."""
    return dot(tensor, tensor).sqrt()


def cosine(one: Tensor, other: Tensor) -> Tensor:
    """Return the cosine of the angle between two real tensors of one size; NaN if one is zero."""
    arrays = _arrays(one, other)
    if arrays is None:
        return dot(one, other) / (length(one) * length(other))
    first, second = arrays
    # Two roots, as the product of two sums of squares may overflow.
    lengths = math.sqrt(_product(first, first)) * math.sqrt(_product(second, second))
    found = _product(first, second) / lengths if lengths else math.nan
    return torch.tensor(found, dtype=torch.float64)


def _arrays(one: Tensor, other: Tensor) -> tuple[Floats, Floats] | None:
    """Return both as flat float32 views in one order, if possible."""
    # In memory order, pairs of elements match only if the strides do.
    if one is not other and one.stride() != other.stride():
        return None
    first = dense(one)
    second = first if one is other or first is None else dense(other)
    return None if first is None or second is None else (first, second)


def _product(one: Floats, other: Floats) -> float:
    found = quiet.run(_by_rows, one, other)
    # Else squares may have left the range of float32, or the vectors are at right angles.
    if SMALLEST < abs(found) < math.inf:
        return found
    return float(quiet.run(_by_rows, one.astype(np.float64), other.astype(np.float64)))


def _by_rows(one: Floats, other: Floats) -> float:
    whole = one.size - one.size % ROW
    rest = float(one[whole:].dot(other[whole:]))
    if not whole:
        return rest
    rows = np.vecdot(one[:whole].reshape(-1, ROW), other[:whole].reshape(-1, ROW))
    return sum(rows.tolist(), rest)
