"""A few samples of some tensors, copied while these exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from notebook_probe.record.views.looks import OF_MODULE
from notebook_probe.run.looks.kept_tensor import KeptTensor

__all__ = ["SampleCopies"]

N_SAMPLES = 8
MOST_NUMBERS = 2**16
"""Maximum number of copied elements of one tensor; larger samples are thinned."""
MOST_TENSORS = 6


@dataclass(frozen=True, eq=False, slots=True)
class SampleCopies:
    """Samples of the tensors of one step.

    Attributes
    ----------
    step : int
    tensors : mapping of str to KeptTensor
        Statistics of each tensor, by its name.
    samples : mapping of str to Tensor
        Copied elements of each, float32 on the host.
    """

    step: int
    tensors: Mapping[str, KeptTensor]
    samples: Mapping[str, Tensor]

    @classmethod
    def of(cls, step: int, named: Mapping[str, Tensor]) -> Self:
        """Copy some samples of the first tensors whose elements are numbers."""
        tensors, samples = {}, {}
        for name, tensor in [one for one in named.items() if _is_plain(one[1])][:MOST_TENSORS]:
            kept = KeptTensor(name, N_SAMPLES, MOST_NUMBERS)
            part = (kept.whole if name in OF_MODULE else kept.of_batch)(tensor.detach())
            tensors[name] = kept
            samples[name] = part.to("cpu", torch.float32, copy=True)
        return cls(step, tensors, samples)


def _is_plain(tensor: Tensor) -> bool:
    """Return whether the elements can be copied as numbers."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_meta:
        return False
    is_number = type(tensor) in (Tensor, torch.nn.Parameter) and not tensor.is_complex()
    return is_number and not tensor.is_quantized and tensor.numel() > 0
