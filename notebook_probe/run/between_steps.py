"""Work of a run's gate between two steps: each request goes to its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.requests import Act, Request
from notebook_probe.run.attach.whole_steps import OTHER_PROBES, WholeSteps
from notebook_probe.run.flight.recorder import FlightRecorder
from notebook_probe.run.looks.looks import Looks

__all__ = ["BetweenSteps"]


@dataclass(slots=True)
class BetweenSteps:
    """The gate's Boundary: probes are attached and taken off, and what else is asked is done."""

    probes: ProbeSet
    looks: Looks
    flight: FlightRecorder
    whole: WholeSteps
    acts: dict[type, Act] = field(default_factory=dict)
    """The function of each kind of request."""
    lookers: list[Callable[[int], bool]] = field(default_factory=list)
    """Functions that inspect the model before a step, and return whether to at the next one."""

    def apply(self, request: Request, step: int) -> str:
        done = self.acts[type(request)](request, step)
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
