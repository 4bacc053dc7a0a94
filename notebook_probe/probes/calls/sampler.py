"""Protocol of an object that sees single calls of the model, with their inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["CallSampler"]


class CallSampler(Protocol):
    """Sees one call of the root, and is then forgotten by the observer; it must not raise."""

    def enters(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Handle the beginning of the call, with its arguments."""

    def leaves(self, output: object) -> None:
        """Handle the end of the call, on the same thread; None as output if it raised."""
