"""Rank of this process in its job; without communication."""

from __future__ import annotations

import os

import torch.distributed as dist

__all__ = ["own_rank"]


def own_rank() -> int | None:
    """Rank of this process in a job of several, None in a process alone.

    The rank from torch.distributed, or, before it is initialized, from launchers: ``RANK`` and
    ``WORLD_SIZE``.
    """
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank() if dist.get_world_size() > 1 else None
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdecimal() and size.isdecimal() and int(size) > 1 else None
