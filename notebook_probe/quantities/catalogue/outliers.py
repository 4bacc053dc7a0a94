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

    1 where all channels are equally large, their number where one has everything. Transformers in
    training grow outlier channels, and with them this number; the larger it is, the more their
    quantisation to 8 bits loses.

    Warnings
    --------
    Right behind a norm layer it mirrors that layer's gain. Missing where all is zero.
    """
    # Squares of mean squares: s^4 would overflow earlier in float32.
    power = output_channels.rms.square()
    return power.square().mean() / power.mean().square()


@quantity(combine="max", cost="sort", source="https://arxiv.org/abs/2402.17762", question=RANGE)
def massive_ratio(output: Tensor) -> Tensor | float:
    """Largest activation against the usual one, ``max |y| / median |y|``.

    Below 100 in most layers. Above 1000, with a largest one above 100, activations are called
    massive: a handful, on the first token or a separator, act as a bias that attention leans on.

    Warnings
    --------
    Infinite where more than half is zero, as behind many a ReLU. The exact median takes a partial
    sort of the whole tensor.
    """
    size = readable(output).abs().flatten()
    if not size.numel():
        return math.nan
    return size.amax() / _median(size)


def _median(values: Tensor) -> Tensor:
    """The middle one, or the mean of the middle two."""
    if values.is_cpu:  # both are found at once
        return torch.as_tensor(np.median(values.numpy()))
    n, ordered = values.numel(), values.sort().values  # kthvalue is not deterministic on CUDA
    return ordered[(n - 1) // 2 : n // 2 + 1].mean()
