"""How the messages of a panel are answered while a cell blocks the kernel: at least not at all."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Colab has none
    from comm.base_comm import BaseComm

__all__ = ["PUMP_INTERVAL_S", "Way", "uninterrupted"]

PUMP_INTERVAL_S = 0.02


class Way:
    """The way of last resort: messages wait for the end of the cell, or nobody sends any."""

    answers = False
    """Messages are answered while a cell blocks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.carried: set[str] = set()

    def carry(self, comm: BaseComm) -> None:
        self.carried.add(comm.comm_id)

    def forget(self, comm: BaseComm) -> None:
        self.carried.discard(comm.comm_id)

    def pump(self) -> None:
        """Answer what waits; called at every step boundary."""

    def tell_myself(self, comm_id: str, content: Mapping[str, Any]) -> None:
        """Send a comm a custom message as a front end does."""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold an interrupt back to the end of the block; other threads than the main get none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        signal.raise_signal(signal.SIGINT)
