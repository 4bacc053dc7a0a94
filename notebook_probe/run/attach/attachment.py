"""Probes that were attached together, also for modules added later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.step.probe import Probe
from notebook_probe.run.attach.request import Resolver
from notebook_probe.run.attach.windows import check_windows
from notebook_probe.schedules import Schedule

__all__ = ["Attachment", "ProbeKey"]

ProbeKey: TypeAlias = "tuple[str, str, Schedule, bool]"


@dataclass(eq=False)
class Attachment:
    """A request and the probes that it has produced so far.

    It also applies to modules that are added later.

    Attributes
    ----------
    resolver : callable
        Resolves the request for the present model.
    """

    resolver: Resolver
    probes: list[Probe] = field(default_factory=list)
    skipped: tuple[str, ...] = ()

    @classmethod
    def resolved(cls, resolver: Resolver, model_map: ModelMap) -> Attachment:
        """Resolve a request for the first time; raises what ``resolver`` raises."""
        found = resolver(model_map)
        check_windows(found.probes)
        return cls(resolver, [*found.probes], found.skipped)

    def move(self, probes: Mapping[ProbeKey, Probe], move: Callable[[Resolver], Resolver]) -> None:
        """Replace some of its probes, and change future ones accordingly."""
        if any(probe.key() in probes for probe in self.probes):
            self.probes = [probes.get(probe.key(), probe) for probe in self.probes]
            self.resolver = move(self.resolver)
