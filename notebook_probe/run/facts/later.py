"""Numbers that are read from tensors now, and judged when they have come to the host."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from notebook_probe.probes.reading.host_copy import HostBatch

__all__ = ["Judge", "Later"]

Judge: TypeAlias = Callable[[Sequence[Any]], None]
"""Function of the numbers: a float for each scalar, a float64 tensor for any other."""


class Later:
    """Numbers on their way to the host, each with a function that judges them in their order."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[HostBatch, Judge]] = deque()
        self._turn = threading.Lock()

    def read(self, tensors: list[Tensor], judge: Judge) -> None:
        """Start copying tensors of one device; no accelerator is waited for."""
        self._waiting.append((HostBatch(tensors), judge))

    def judge(self) -> None:
        """Judge all numbers that have arrived, unless another thread does so now."""
        if not self._turn.acquire(blocking=False):
            return
        try:
            while self._waiting and self._waiting[0][0].has_come:
                batch, judge = self._waiting.popleft()
                judge(batch.values())
        finally:
            self._turn.release()
