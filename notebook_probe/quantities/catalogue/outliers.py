"""Activations that stand out: single massive ones, and channels much larger than the others."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from notebook_probe.quantities.catalogue.per_channel import Channels
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.questions import RANGE
from notebook_probe.quantities.reduce.arrays import readable

__all__ = ["channel_kurtosis", "massive_ratio"]


@quantity(source="https://arxiv.org/abs/2405.19279", question=RANGE)
def channel_kurtosis(output_channels: Channels) -> Tensor:
    """Inequality of channel sizes, ``mean(s^4) / mean(s^2)^2`` with ``s_c = sqrt(E[y_c^2])``.

    1 if all channels are equally large; the number of channels if one has everything. Transformers
    in training grow outlier channels, and this number grows with them. The larger it is, the more
    8-bit quantization loses.

    Warnings
    --------
    Right behind a norm layer it mirrors that layer's gain. Missing if all outputs are zero.
    """
    # Squares of mean squares: s^4 would overflow earlier in float32.
    power = output_channels.rms.square()
    return power.square().mean() / power.mean().square()


@quantity(combine="max", cost="sort", source="https://arxiv.org/abs/2402.17762", question=RANGE)
def massive_ratio(output: Tensor) -> Tensor | float:
    """Largest activation against the usual one, ``max |y| / median |y|``.

    Below 100 in most layers. Above 1000, with a largest one above 100, activations are called
    massive; a few of them, on the first token or a separator, act as a bias for attention.

    Warnings
    --------
    Infinite if more than half of the elements are zero, as after many ReLUs. The exact median takes
    a partial sort of the whole tensor.
    """
    size = readable(output).abs().flatten()
    if not size.numel():
        return math.nan
    return size.amax() / _median(size)


def _median(values: Tensor) -> Tensor:
    """Return the middle value, or the mean of the middle two."""
    if values.is_cpu:  # both are found at once
        return torch.as_tensor(np.median(values.numpy()))
    n, ordered = values.numel(), values.sort().values  # kthvalue is not deterministic on CUDA
    return ordered[(n - 1) // 2 : n // 2 + 1].mean()
