"""Work of a run's gate between two steps: each request goes to its handler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.requests import Request
from notebook_probe.run.attach.whole_steps import OTHER_PROBES, WholeSteps
from notebook_probe.run.flight.recorder import FlightRecorder
from notebook_probe.run.looks.looks import Looks

__all__ = ["Act", "BetweenSteps"]

Act: TypeAlias = Callable[[Any, int], str]
"""Function that applies a request from a step on; returns what was done, in words."""


@dataclass(slots=True)
class BetweenSteps:
    """The gate's Boundary: probes are attached and taken off, and what else is asked is done."""

    probes: ProbeSet
    looks: Looks
    flight: FlightRecorder
    whole: WholeSteps
    acts: dict[type, Act] = field(default_factory=dict)
    """Handlers of requests that are not about probes."""
    lookers: list[Callable[[int], bool]] = field(default_factory=list)
    """Functions that inspect the model before a step, and return whether to at the next one."""

    def apply(self, request: Request, step: int) -> str:
        done = self.acts.get(type(request), self.probes.apply)(request, step)
        self.whole.ask(step, done)
        return done

    def change(self, step: int) -> bool:
        self.looks.finish(step)
        if self.probes.change(step):
            self.whole.ask(step, OTHER_PROBES)
        self.flight.write_due()
        again = [look(step) for look in self.lookers]
        self.whole.look(step)  # last: the others may have found a reason
        return any(again) or self.looks.are_open or self.flight.n_steps > 0
