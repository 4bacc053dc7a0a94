"""Hashes of tensors: two sums in float64, of which one depends on the order of the values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from notebook_probe.probes.step.containers import tensors_of

__all__ = ["TensorHash", "hash_of", "hashes_of"]

AT_ONCE = 1 << 22
"""Values that are converted at once."""


@dataclass(frozen=True, slots=True)
class TensorHash:
    """Two sums over the values of a tensor; a view of another shape has the same.

    Attributes
    ----------
    total : float
        Sum of absolute values.
    ordered : float
        Sum of values with weights from 1 to 2 in their order, which sees signs and permutations.
    """

    total: float
    ordered: float

    def is_near(self, other: TensorHash, tolerance: float) -> bool:
        """Return whether two tensors are equal but for rounding, relative to their values."""
        scale = max(abs(self.total), abs(other.total))
        pairs = (self.total, other.total), (self.ordered, other.ordered)
        return all(_is_near(a, b, tolerance * scale) for a, b in pairs)


def hashes_of(values: Any) -> tuple[TensorHash, ...]:
    """Return the hashes of all tensors in a value, at any depth."""
    found = (hash_of(one) for one in tensors_of(values))
    return tuple(one for one in found if one is not None)


def hash_of(tensor: Tensor) -> TensorHash | None:
    """Return the hash of a tensor; None for a sparse or meta tensor.

    Examples
    --------
    >>> hash_of(torch.tensor([3.0, -4.0]))
    TensorHash(total=7.0, ordered=-5.0)
    """
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        return None
    values = tensor.detach()
    if values.is_complex():
        values = torch.view_as_real(values.resolve_conj())
    values = values.reshape(-1)
    total, ordered, n = 0.0, 0.0, max(1, len(values) - 1)
    for start in range(0, len(values), AT_ONCE):
        part = values[start : start + AT_ONCE].double()
        places = torch.arange(start, start + len(part), device=part.device, dtype=torch.float64)
        total += float(part.abs().sum())
        ordered += float(torch.dot(part, 1 + places / n))
    return TensorHash(_one_nan(total), _one_nan(ordered))


def _one_nan(value: float) -> float:
    """Return the value, and the same object for every NaN, which equals itself in a tuple."""
    return math.nan if math.isnan(value) else value


def _is_near(a: float, b: float, bound: float) -> bool:
    if a == b or (math.isnan(a) and math.isnan(b)):
        return True
    return math.isfinite(bound) and abs(a - b) <= bound
