"""StandingRequest requests: what was asked for goes on holding for modules that are added later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.step.probe import Probe
from notebook_probe.run.attach.request import ResolvedRequest

__all__ = ["StandingRequest"]


@dataclass(eq=False)
class StandingRequest:
    """One request, and the probes it has come to so far.

    Attributes
    ----------
    again : callable
        Reads the request for the model as it is now.
    """

    again: Callable[[ModelMap], ResolvedRequest]
    probes: list[Probe] = field(default_factory=list)
    skipped: tuple[str, ...] = ()
