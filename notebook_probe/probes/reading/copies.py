"""Copies of tensors whose states another thread than the training's measures.

A quantity that takes much longer than a copy does not block the step: the step keeps copies of its
tensors instead of their states, and another thread measures them after it is closed. The results
are those that the training thread would have computed from the same elements.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.probes.reading.cells import Cell
from notebook_probe.probes.step.frame import StepFrame

__all__ = ["Copied", "Copies", "are_copied", "finish", "has_come", "wait_for"]

ENOUGH = 1 << 14
"""Elements, in all, of which copies take less than measuring them where they are."""
MOST_BYTES, MOST_STEPS = 1 << 26, 16
"""Limits of copies that wait at once; a step beyond them is measured as it closes."""

_PLAIN = (Tensor, nn.Parameter)


def are_copied(tensors: Sequence[Tensor]) -> bool:
    """Return whether copies of these, on the host, take less than measuring them."""
    if not all(type(one) in _PLAIN and one.is_cpu for one in tensors):
        return False
    return ENOUGH <= sum(one.numel() for one in tensors) <= MOST_BYTES // 8


class Copied:
    """Placeholder in a frame for the state of a tensor.

    Parameters
    ----------
    cell : Cell
    tensor : Tensor
        Copied at once.
    spare : dict
        Memory of copies that were measured, by cell: new memory takes longer than copying.
    """

    __slots__ = ("_copy", "_future", "_lock", "_outcome", "_pid", "_spare", "cell", "n_bytes")

    def __init__(self, cell: Cell, tensor: Tensor, spare: dict[Cell, Tensor]) -> None:
        self.cell, self._spare = cell, spare
        self._copy: Tensor | None = _copied(tensor.detach(), spare.pop(cell, None))
        self.n_bytes = self._copy.nbytes
        self._outcome: tuple[Any, Exception | None] = None, None
        self._future: Future[None] | None = None
        self._lock, self._pid = threading.Lock(), os.getpid()  # a reader may look at an open step

    def begun(self, future: Future[None]) -> None:
        """Note that another thread measures it."""
        self._future = future

    @property
    def has_come(self) -> bool:
        """True if waiting is not needed."""
        return self._future is None or self._future.done() or not self._is_ours

    @property
    def _is_ours(self) -> bool:
        """True in the process that made it: a fork has no threads, which may have held the lock."""
        return self._pid == os.getpid()

    def measure(self) -> None:
        """Measure the copy, and release it."""
        with self._lock:
            copy, cell = self._copy, self.cell
            if copy is None:
                return
            try:
                self._outcome = cell.reduction.measure(copy, None, cell.wanted), None
            except Exception as error:  # whatever a tensor is
                self._outcome = None, error
            self._copy, self._spare[cell] = None, copy

    def wait(self) -> None:
        """Wait for the other thread."""
        if not self.has_come and self._future is not None:
            self._future.exception()

    def put(self, frame: StepFrame) -> None:
        """Put the state where it belongs; waits for it. A forked child has a gap."""
        self.wait()
        if self._is_ours:
            self.measure()
        state, error = self._outcome
        frame.states[self.cell.index] = state
        if error is not None:
            frame.blame_all(self.cell.probes, error)


def _copied(tensor: Tensor, spare: Tensor | None) -> Tensor:
    if spare is None or spare.shape != tensor.shape or spare.dtype != tensor.dtype:
        return tensor.clone()
    return spare.copy_(tensor)


def wait_for(frame: StepFrame) -> None:
    """Wait until all copies are measured; the frame is unchanged."""
    if frame.has_copies:
        for one in _of(frame):
            one.wait()


def has_come(frame: StepFrame) -> bool:
    """Finishing the frame will not wait."""
    return not frame.has_copies or all(one.has_come for one in _of(frame))


def finish(frame: StepFrame) -> None:
    """Replace copies by states; waits for those that are being measured."""
    if frame.has_copies:
        for one in _of(frame):
            one.put(frame)
        frame.has_copies = False


def _of(frame: StepFrame) -> list[Copied]:
    return [one for one in frame.states if type(one) is Copied]


class Copies:
    """The thread that measures them, from the first one on until it is closed."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: deque[tuple[Future[None], int]] = deque()

    def begin(self, frame: StepFrame) -> None:
        """Measure the copies of a closed frame in the thread; at once where too many wait."""
        copied = _of(frame)
        n_bytes = sum(one.n_bytes for one in copied)
        if not self._has_room(n_bytes):
            finish(frame)
            return
        try:
            future = self._executor().submit(_measure, copied)
        except RuntimeError:  # the interpreter ends
            finish(frame)
            return
        self._waiting.append((future, n_bytes))
        for one in copied:
            one.begun(future)

    def close(self) -> None:
        """Measure what waits, and end the thread; twice is fine."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()

    def _has_room(self, n_bytes: int) -> bool:
        while self._waiting and self._waiting[0][0].done():
            self._waiting.popleft()
        held = sum(waiting for _, waiting in self._waiting)
        return len(self._waiting) < MOST_STEPS and held + n_bytes <= MOST_BYTES

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="notebook_probe copies")
        return self._thread


@torch.no_grad()
def _measure(copied: Sequence[Copied]) -> None:
    for one in copied:
        one.measure()
