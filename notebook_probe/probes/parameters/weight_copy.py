"""Copy of a weight from before a step, in memory that is used at each step again."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from notebook_probe.quantities.reduce.arrays import Floats, dense
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["WeightCopy"]


class WeightCopy(NamedTuple):
    """Copy of a weight.

    Attributes
    ----------
    tensor : Tensor
    array : array or None
        Flat view of the elements; None for types without such a view, such as float16.
    n : int
        Number of its elements.
    """

    tensor: Tensor
    array: Floats | None
    n: int

    @classmethod
    def like(cls, value: Tensor) -> WeightCopy:
        """Return memory for a copy of a value."""
        # Outside of inference mode, because it will be written outside, too.
        with uninterrupted, torch.inference_mode(False):
            tensor = torch.empty_like(value)
        return cls(tensor, dense(tensor), tensor.numel())

    def suits(self, value: Tensor) -> bool:
        """Return whether the value fits in."""
        return self.tensor.shape == value.shape and self.tensor.dtype is value.dtype
