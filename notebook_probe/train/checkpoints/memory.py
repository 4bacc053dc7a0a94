"""The memory of the host that states are copied into, time and again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

import torch
from torch import Tensor

__all__ = ["Memory"]


class Memory:
    """Copies tensors, into the memory of earlier copies once these are needed no more.

    The first write to fresh memory takes the system three times as long as one to used
    memory, since it clears each page of it.

    Examples
    --------
    >>> memory, weight = Memory(), torch.ones(2)
    >>> first = memory.copy(weight)
    >>> memory.take_back()
    >>> memory.copy(2 * weight) is first, first
    (True, tensor([2., 2.]))
    """

    def __init__(self) -> None:
        self._free: defaultdict[Hashable, list[Tensor]] = defaultdict(list)
        self._taken: list[tuple[Hashable, Tensor]] = []

    def copy(self, value: Tensor) -> Tensor:
        """Return a copy in the memory of the host."""
        # Only of plain strided tensors does copy_ into equal shape and strides keep everything.
        if type(value) is not Tensor or value.layout != torch.strided or value.is_quantized:
            return value.to("cpu", copy=True)
        kind = value.shape, value.stride(), value.dtype
        free = self._free.get(kind)
        # copy=True, as `to` returns the tensor itself where it is on the host already.
        copy = free.pop().copy_(value) if free else value.to("cpu", copy=True)
        self._taken.append((kind, copy))
        return copy

    def take_back(self) -> None:
        """Release the copies for reuse by the next ones."""
        taken = self._taken
        self.release()
        for kind, copy in reversed(taken):  # the first is taken first again
            self._free[kind].append(copy)

    def release(self) -> None:
        """Release all memory."""
        self._free, self._taken = defaultdict(list), []
