"""How a live run is steered and asked how it does; imported without torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from notebook_probe.run.attach.requests import Fitting, Request, Ticket
from notebook_probe.run.health.status import ProbeStatus, QuantityInfo, StatusHead

__all__ = ["Controls"]


class Controls(Protocol):
    """The side of a live run that a panel may call, from any thread."""

    def put(self, request: Request) -> Ticket:
        """Queue a request for the next step boundary."""

    def status_head(self) -> StatusHead:
        """The state of the run now; cheap enough to ask ten times a second."""

    def probes(self) -> Sequence[ProbeStatus]:
        """Every attached probe, one entry per module and quantity; takes 10 µs or so for each."""

    def catalogue(self) -> Sequence[QuantityInfo]:
        """Every quantity that can be attached."""

    def fitting(self) -> Fitting:
        """Where each of them can be attached, in the model as it is now."""

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` on the training thread at every step boundary; returns its removal.

        While the run is paused it is called every 20 ms.
        """
        ...

    def settle(self, error: BaseException | None = None) -> None:
        """Close the open step if its update has happened; for the end of a notebook cell.

        ``error`` is what ended it.
        """
        ...
