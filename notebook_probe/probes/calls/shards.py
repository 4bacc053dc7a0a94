"""Local shards of an attention's tensors that are distributed over processes."""

from __future__ import annotations

from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.reduce.arrays import local

__all__ = ["own_heads"]


def own_heads(tensor: Tensor) -> Tensor:
    """Take this process's items and heads of a tensor (batch, ..., head, row, column).

    Raises
    ------
    UnreadableError
        The rows or columns are spread over processes: their scores cannot be computed without
        communication.
    """
    rows = tensor.dim() - 2
    for placement in getattr(tensor, "placements", ()):
        if not placement.is_replicate() and not (placement.is_shard() and placement.dim < rows):
            raise UnreadableError(f"attention whose tensors are spread by {placement}")
    return local(tensor)
