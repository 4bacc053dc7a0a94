"""Zero-copy numpy views of tensors: BLAS dots on them are the cheapest exact sums on a CPU."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Floats", "dense"]

Floats: TypeAlias = npt.NDArray[np.float32]

_PLAIN = (Tensor, torch.nn.Parameter)


def dense(tensor: Tensor) -> Floats | None:
    """All elements as one flat float32 view, in memory order; None where no such view exists.

    Permuted and channels-last tensors have one too: sums do not care for the order.
    """
    if (
        type(tensor) not in _PLAIN
        or tensor.dtype is not torch.float32
        or not tensor.is_cpu
        or tensor.layout is not torch.strided
        or tensor.is_neg()
    ):
        return None
    tensor = tensor.detach()
    if not tensor.is_contiguous():
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        tensor = tensor.permute(order)
        if not tensor.is_contiguous():
            return None
    view: Floats = tensor.numpy().reshape(-1)
    return view
