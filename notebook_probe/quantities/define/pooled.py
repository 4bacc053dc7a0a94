"""Tensor that a user's own reduction returns, pooled over the calls of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.define.quantity import Combine

__all__ = ["Pooled", "result", "tensor_of"]

TOGETHER: dict[Combine, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": torch.add,
    "sum": torch.add,
    "max": torch.maximum,
    "min": torch.minimum,
    "last": lambda one, other: other,
    # hypot(sqrt(a), sqrt(b)) without squares that overflow.
    "rss": torch.hypot,
}
"""Element by element; NaN if one is, but for the last."""


@dataclass(slots=True)
class Pooled:
    """Pooled tensors, each of which counts the same."""

    value: Tensor
    """Value in float64; for a mean, the sum."""
    combine: Combine
    n: int = 1

    def merge(self, other: Pooled) -> Pooled:
        """Return the value pooled over the calls of both."""
        if self.value.shape != other.value.shape:
            shapes = " and ".join(str(tuple(one.value.shape)) for one in (self, other))
            raise QuantityError(f"results of shapes {shapes} in one step cannot be pooled")
        # Sums are kept while pooling and divided once: a mean of means would weigh late calls more.
        value = TOGETHER[self.combine](self.value, other.value)
        return Pooled(value, self.combine, self.n + other.n)


def result(pooled: Pooled) -> Tensor:
    """Return the value for a quantity, on the host.

    >>> result(Pooled(torch.ones(2), "mean").merge(Pooled(torch.zeros(2), "mean")))
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    value = torch.as_tensor(pooled.value, dtype=torch.float64)  # one number comes as a float
    return value / pooled.n if pooled.combine == "mean" else value


def tensor_of(where: str, returned: Any) -> Tensor:
    """Return a float64 copy of a real tensor or number that was returned, on its device.

    Raises
    ------
    QuantityError
        For anything else.
    """
    if isinstance(returned, Tensor) and not returned.is_complex():
        # A copy, as the returned tensor may be a view of one that the training uses.
        wide = torch.float64 if returned.device.type != "mps" else torch.float32
        return returned.detach().to(wide, copy=True)
    if isinstance(returned, Real):
        return torch.tensor(float(returned), dtype=torch.float64)
    given = f"{type(returned).__name__} {returned!r}"[:80]
    raise QuantityError(f"{where} returned {given}; a real tensor or a number is expected")
