"""What the gate of a run has done between two steps: each request by whom it concerns."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.requests import Request, Set
from notebook_probe.run.settings.settings import Settings

__all__ = ["BetweenSteps"]


@dataclass(frozen=True, slots=True)
class BetweenSteps:
    """The gate's Boundary: probes are attached and taken off, and settings set."""

    probes: ProbeSet
    settings: Settings

    def apply(self, request: Request, step: int) -> str:
        if isinstance(request, Set):
            return self.settings.apply(request, step)
        return self.probes.apply(request, step)

    def change(self, step: int) -> None:
        self.probes.change(step)
