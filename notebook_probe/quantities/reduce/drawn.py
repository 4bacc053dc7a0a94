"""Some entries of a large tensor, at places that are drawn once and for all."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

__all__ = ["sampled_rows"]

SHUFFLED = 1 << 22
"""Of more entries they are drawn with replacement, which is then as good."""


def sampled_rows(values: Tensor, most: int) -> Tensor:
    """At most that many entries along the first axis; the same places for the same sizes.

    No random number of torch's own is drawn.

    Examples
    --------
    >>> sampled_rows(torch.arange(100), 3).shape, sampled_rows(torch.arange(2), 3)
    (torch.Size([3]), tensor([0, 1]))
    """
    if most >= len(values):
        return values
    return values[_places(len(values), most).to(values.device, non_blocking=True)]


@lru_cache(maxsize=32)
def _places(n: int, of_them: int) -> Tensor:
    generator = torch.Generator().manual_seed(n)
    if n <= SHUFFLED:
        return torch.randperm(n, generator=generator)[:of_them].clone()
    return torch.randint(n, (of_them,), generator=generator)
