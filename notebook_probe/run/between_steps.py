"""What the gate of a run has done between two steps: each request by whom it concerns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.requests import Request
from notebook_probe.run.flight.recorder import FlightRecorder
from notebook_probe.run.looks.looks import Looks

__all__ = ["Act", "BetweenSteps"]

Act: TypeAlias = Callable[[Any, int], str]
"""Does what a request says, from a step on; returns what was done, in words."""


@dataclass(frozen=True, slots=True)
class BetweenSteps:
    """The gate's Boundary: probes are attached and taken off, and what else is asked is done."""

    probes: ProbeSet
    looks: Looks
    flight: FlightRecorder
    acts: Mapping[type, Act]
    """Who does requests of a kind that is not about probes."""
    lookers: Sequence[Callable[[int], None]]
    """Who looks at the model before each step."""

    def apply(self, request: Request, step: int) -> str:
        return self.acts.get(type(request), self.probes.apply)(request, step)

    def change(self, step: int) -> None:
        self.looks.finish(step)
        self.probes.change(step)
        self.flight.write_due()
        for look in self.lookers:
            look(step)
