"""What a panel or another thread may ask of a run; applied by the training thread between steps.

A request is a frozen value. Putting it returns a `Ticket` at once; the ticket tells what became
of it. Nothing here touches a model, so this file is imported without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from notebook_probe.run.health.status import ProbeStatus, QuantityInfo, StatusHead

__all__ = [
    "CALL_KIND",
    "PARAMETER_KIND",
    "Attach",
    "Compiled",
    "Control",
    "Controls",
    "Detach",
    "Fitting",
    "Request",
    "Ticket",
]


@dataclass(frozen=True, slots=True)
class Attach:
    """Measure ``quantity`` at every module of ``where`` (paths) whenever ``schedule`` is due.

    None means where it is usually measured: at all layers, attention modules or the model, as fits.
    """

    where: tuple[str, ...] | None
    quantity: str
    schedule: str = "every(1)"


@dataclass(frozen=True, slots=True)
class Detach:
    """Stop measuring ``quantity`` (every quantity when empty) at the modules of ``where``."""

    where: tuple[str, ...]
    quantity: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """Pause, resume, take one step, or stop the training loop."""

    action: Literal["pause", "resume", "step", "stop"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a compiled model does in steps where its calls are probed."""

    steps: Literal["eager", "skip"]


Request: TypeAlias = Attach | Detach | Control | Compiled


@dataclass(slots=True)
class Ticket:
    """What became of a request; only the training thread writes it, anyone may read it."""

    request: Request
    queued_step: int
    state: Literal["queued", "applied", "refused"] = "queued"
    applied_step: int = -1
    text: str = ""
    """In words: how many probes were attached, or why the request was refused."""


PARAMETER_KIND, CALL_KIND = 0, 1
"""Kinds of places that are no modules."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Where which quantity can be measured. Places of one kind are alike to every quantity."""

    kinds: Mapping[str, int]
    """Module to its kind."""
    misfits: Mapping[str, Sequence[str]]
    """Quantity to, for each kind, why it cannot be measured there; "" where it can."""


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

    def settle(self) -> None:
        """Close the open step if its update has happened; for the end of a notebook cell."""
        ...
