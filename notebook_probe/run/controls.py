"""How a live run is steered and asked how it does; imported without torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from notebook_probe.alerts import Rules
from notebook_probe.record.format.source import Source
from notebook_probe.run.attach.requests import Fitting, Request, Ticket
from notebook_probe.run.breakpoints.requests import BreakpointInfo
from notebook_probe.run.health.status import PresetInfo, ProbeStatus, QuantityInfo, StatusHead
from notebook_probe.run.settings.setting import KnobInfo

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

    def preset_infos(self) -> Sequence[PresetInfo]:
        """What can be attached under one name."""

    def fitting(self) -> Fitting:
        """Where each of them can be attached, in the model as it is now."""

    def knobs(self) -> Sequence[KnobInfo]:
        """Everything that can be set while it trains."""

    def pending_looks(self) -> tuple[list[tuple[str, int]], dict[tuple[str, int], str]]:
        """Module and step of the looks that are not over, and why others have kept nothing."""

    def breakpoint_infos(self) -> Sequence[BreakpointInfo]:
        """Everything that training is to be held by."""

    def severe_rules(self) -> Sequence[str]:
        """The alert rules that are severe."""

    @property
    def restores(self) -> str:
        """What is as it was where the loop goes back, in words; "" where it cannot."""
        ...

    @property
    def left(self) -> Source | None:
        """The run that was left for this one, a branch of it."""
        ...

    @property
    def rules(self) -> Rules:
        """The alert rules that are followed, each of which can be edited."""

    def rule_names(self) -> Sequence[str]:
        """The alert rules that are followed."""

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` on the training thread at every step boundary; returns its removal.

        While the run is paused it is called every 20 ms.
        """
        ...

    def each_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` when requests were answered, and when training is held or let go.

        On the training thread, so it may only wake somebody; returns its removal.
        """
        ...

    def settle(self, error: BaseException | None = None) -> None:
        """Close the open step if its update has happened; for the end of a notebook cell.

        ``error`` is what ended it.
        """
        ...
