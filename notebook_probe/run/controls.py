"""Interface of a live run for the panel: control and status; imported without torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from notebook_probe.alerts import Rules
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.requests import Fitting, Request, Ticket
from notebook_probe.run.breakpoints.requests import BreakpointInfo
from notebook_probe.run.health.status import PresetInfo, ProbeStatus, QuantityInfo, StatusHead
from notebook_probe.run.settings.setting import KnobInfo

__all__ = ["Controls"]


class Controls(Protocol):
    """Interface of a live run for the panel.

    Every method may be called from any thread. `RunControls` implements it.
    """

    @property
    def is_here(self) -> bool:
        """True if this process trains the run."""
        ...

    def put(self, request: Request) -> Ticket:
        """Queue a request for the next step boundary."""

    def status_head(self) -> StatusHead:
        """Return the state of the run; cheap enough to call ten times a second."""

    def probes(self) -> Sequence[ProbeStatus]:
        """Every attached probe, one entry per module and quantity; takes 10 µs or so for each."""

    def attachable(self) -> Sequence[QuantityInfo]:
        """Every quantity that can be attached."""

    def preset_infos(self) -> Sequence[PresetInfo]:
        """Return the presets."""

    def fitting(self) -> Fitting:
        """Return where each quantity can be attached in the present model."""

    def looked_at(self) -> None:
        """Note that a user looks at other series: the next steps are measured whole."""

    def knobs(self) -> Sequence[KnobInfo]:
        """Return everything that can be set during training."""

    def pending_looks(self) -> tuple[list[tuple[str, int]], dict[tuple[str, int], str]]:
        """Return module and step of pending looks, and why others have no result."""

    def breakpoint_infos(self) -> Sequence[BreakpointInfo]:
        """Return the breakpoints."""

    def severe_rules(self) -> Sequence[str]:
        """Return the alert rules that are severe."""

    @property
    def restores(self) -> str:
        """State that the loop restores when it goes back, as text; "" if it cannot go back."""
        ...

    @property
    def parent(self) -> RunSource | None:
        """The parent branch, if this is a branch of another run."""
        ...

    @property
    def rules(self) -> Rules:
        """The alert rules that are followed, each of which can be edited."""

    def rule_names(self) -> Sequence[str]:
        """Return the followed alert rules."""

    def follow(self) -> Callable[[], None]:
        """Note that a panel shows the run, until the returned function is called.

        It costs a step nothing but a reference to the inputs.
        """
        ...

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` on the training thread at every step boundary; returns its removal.

        While the run is paused it is called every 20 ms.
        """
        ...

    def each_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` after answers to requests, and when training pauses or continues.

        It is called on the training thread, so it may only wake another one; returns its removal.
        """
        ...

    def settle(self, error: BaseException | None = None) -> None:
        """Close the open step if its update has happened; for the end of a notebook cell.

        ``error`` is what ended it.
        """
        ...
