"""Ways to answer a panel's messages while a cell blocks the kernel. This one: not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Colab has none
    from comm.base_comm import BaseComm

__all__ = ["PUMP_INTERVAL_S", "MessageWay"]

PUMP_INTERVAL_S = 0.02


class MessageWay:
    """The last resort: messages wait for the end of the cell, or no messages are sent."""

    answers = False
    """Messages are answered while a cell blocks."""
    is_pumped = False
    """Messages are answered by `pump`, between two steps."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.carried: set[str] = set()

    def carry(self, comm: BaseComm) -> None:
        self.carried.add(comm.comm_id)

    def forget(self, comm: BaseComm) -> None:
        self.carried.discard(comm.comm_id)

    def pump(self) -> None:
        """Answer waiting messages; called at every step boundary."""

    def tell_myself(self, comm_id: str, content: Mapping[str, Any]) -> None:
        """Send a comm a custom message as a front end does."""
