"""Modules of which each rank has a part, as FSDP2 makes them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import torch
from torch import Tensor

from notebook_probe.model.map import ModelMap

__all__ = ["shards_of"]

SOME = 0
"""Number of copies for a module of whose weights only some are split."""


def shards_of(model_map: ModelMap) -> dict[str, int]:
    """Return the copies of each shard in the job, by the path of modules and weights.

    There is 1 with FSDP, and more if groups of ranks have the same shards; 0 for a module some of
    whose weights are whole on each rank. Modules without a split weight are left out.
    """
    if not torch.distributed.is_available():
        return {}
    found: dict[str, int] = {}
    for path, module in model_map.modules.items():
        copies = _common(_copies(one) for one in module.parameters())
        if copies is not None:
            found[path] = copies
        for name, one in module._parameters.items():
            own = None if one is None else _copies(one)
            if own is not None:
                found[f"{path}.{name}" if path else name] = own
    return found


def _common(copies: Iterable[int | None]) -> int | None:
    kinds = {*copies}
    if kinds <= {None}:
        return None
    return SOME if len(kinds) > 1 else kinds.pop()


def _copies(weight: Tensor) -> int | None:
    """Return the ranks that have the same part of a weight; None for one that is whole."""
    from torch.distributed.tensor import DTensor, Shard

    data = weight.data
    if not isinstance(data, DTensor):
        return None
    sizes = zip(data.placements, data.device_mesh.shape, strict=True)
    whole = [size for placement, size in sizes if not isinstance(placement, Shard)]
    return prod(whole) if len(whole) < len(data.placements) else None
